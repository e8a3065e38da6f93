package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// 64 who want one lock, of 16 clients: each gets it, in turn.
func TestQuorumOf64Contenders(t *testing.T) {
	t.Parallel()
	all := startNodes(t, 3, time.Minute)
	var h history
	var wg sync.WaitGroup
	both := [2][]zamok.Node{all.drivers(t, 0), all.drivers(t, 1)}
	for i := range 64 / 4 {
		m := quorumOn(t, both[i%2], zamok.Config{GiveUp: patience}).Mutex("job", nil)
		for j := range 4 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				l, err := m.Lock(ctx)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				end := h.held(fmt.Sprint(i, "/", j), l)
				span(time.Millisecond)
				end()
				if err := l.Release(ctx); err != nil {
					t.Errorf("Release: %v", err)
				}
			})
		}
	}
	start := time.Now()
	wg.Wait()
	t.Logf("64 took %v", time.Since(start))
	if n := len(h.check(t)); n != 64 {
		t.Errorf("%d held it", n)
	}
	all.mustClear(t, "job")
}

// A waiter has the lock as soon as it is released, and not when some timer ends: so
// most of the hand-overs are quick.
func TestQuorumWaiterIsToldOfTheRelease(t *testing.T) {
	t.Parallel()
	all := startNodes(t, 3, time.Minute)
	waits := make(chan struct{}, 1000)
	var mutexes [2]*zamok.Mutex
	for turn := range mutexes {
		trace := &zamok.Trace{Waiting: func(zamok.WaitingInfo) { waits <- struct{}{} }}
		mutexes[turn] = all.client(t, turn, zamok.Config{Trace: trace, GiveUp: patience}).Mutex("job", nil)
	}
	const rounds = 11
	l := lock(t, mutexes[0])
	quick := 0
	for i := range rounds {
		for len(waits) > 0 {
			<-waits
		}
		waiter := goLock(t.Context(), mutexes[(i+1)%2])
		receive(t, waits, "place in the queue")
		start := time.Now()
		release(t, l)
		next := receive(t, waiter, "lease")
		if next.err != nil {
			t.Fatal(next.err)
		}
		if took := counted(start, next.at); took <= factor*20*time.Millisecond {
			quick++
		} else {
			t.Logf("one had to wait for %v", took)
		}
		if next.lease.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", next.lease.Fence(), l.Fence())
		}
		l = next.lease
	}
	release(t, l)
	if quick <= rounds/2 {
		t.Errorf("only %d of %d were quick", quick, rounds)
	}
	all.mustClear(t, "job")
}

// Faults of one node after the other under load: nobody believed to hold while another
// did, fences grew, and afterwards everybody still gets the lock and nothing is left.
func TestQuorumRandomFaults(t *testing.T) {
	t.Parallel()
	const longest = time.Second
	seed := uint64(number(t, "ZAMOK_ITEST_SEED", int(rand.Uint32())))
	t.Logf("ZAMOK_ITEST_SEED=%d", seed)
	faults := rand.New(rand.NewPCG(seed, 0))
	all := startNodes(t, 3, longest)
	cfg := zamok.Config{TTL: longest, Quarantine: longest}
	w := &workers{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients []*zamok.Client
	var wg sync.WaitGroup
	for i := range 3 {
		clients = append(clients, all.client(t, i, cfg))
		for j := range 2 {
			m := clients[i].Mutex("job", nil)
			wg.Go(func() {
				for ctx.Err() == nil {
					w.onQuorum(t, fmt.Sprint("client ", i, "/", j), m)
				}
			})
		}
	}
	until := time.Now().Add(duration(t, "ZAMOK_ITEST_FAULTS", 6*time.Second))
	for enough := until.Add(patience); time.Now().Before(until) || w.got.Load() < leastHolds && time.Now().Before(enough); {
		s := all[faults.IntN(len(all))]
		long := time.Duration(faults.IntN(700)) * time.Millisecond
		switch faults.IntN(4) {
		case 0:
			s.Pause()
			span(long)
			s.Resume()
		case 1:
			s.Kill()
			span(long)
			s.Restart()
			span(longest) // one node at a time: the quarantine is over
		case 2:
			s.Restart()
			span(longest)
		case 3:
			_, _ = s.Do("CLIENT", "KILL", "TYPE", "normal")
			_, _ = s.Do("CLIENT", "KILL", "TYPE", "pubsub")
		}
		span(time.Duration(faults.IntN(200)) * time.Millisecond)
	}
	stop()
	wg.Wait()
	for _, c := range clients {
		release(t, lock(t, c.Mutex("job", nil)))
	}
	holds := w.check(t)
	t.Logf("%d holds, %d lost, %d not acquired", len(holds), w.lost.Load(), w.refused.Load())
	if len(holds) < leastHolds {
		t.Error("hardly anybody held the lock, so this shows little")
	}
	all.mustClear(t, "job")
}

// onQuorum is once without a guarded script, which a quorum has not.
func (w *workers) onQuorum(t *testing.T, who string, m *zamok.Mutex) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	short, end := context.WithTimeout(ctx, 200*time.Millisecond+rand.N(3*time.Second))
	defer end()
	l, err := m.Lock(short)
	if err != nil {
		if w.refused.Add(1); !errors.Is(err, zamok.ErrHeld) && !errors.Is(err, zamok.ErrUnavailable) &&
			!errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*zamok.QuarantineError)) {
			t.Errorf("%s: Lock: %v", who, err)
		}
		return
	}
	w.got.Add(1)
	over := w.held(who, l)
	hold := rand.N(20 * time.Millisecond)
	if rand.N(40) == 0 {
		hold = 2 * time.Second // through renewals
	}
	select {
	case <-time.After(hold):
	case <-l.Context().Done():
	}
	over()
	if err := l.Release(ctx); errors.Is(err, zamok.ErrLost) {
		w.lost.Add(1)
	} else if err != nil && !errors.Is(err, zamok.ErrUnavailable) {
		t.Errorf("%s: Release: %v", who, err)
	}
}
