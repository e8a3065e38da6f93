package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// count adds one to a number, and refuses a fence that is smaller than one it
// has seen: a resource that is protected twice.
var count = zamok.NewScript("count", `
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(FENCE) < last then
  return redis.error_reply('ERR an older fence got through')
end
redis.call('SET', KEYS[2], FENCE)
return redis.call('INCR', KEYS[1])`)

// leastHolds is without which random faults show little.
const leastHolds = 50

// Random faults at random moments, on three ways to one server, while nine
// workers of three clients contend for one lock. Afterwards: nobody believed to
// hold while another did, fences grew, the count is right, everybody still gets
// the lock, and nothing is left.
func TestRandomFaults(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		const ttl = 2 * time.Second
		s := startServer(t)
		var ways []*drivertest.Proxy
		var clients []*zamok.Client
		for range 3 {
			way := drivertest.StartProxy(t, s.Addr())
			ways = append(ways, way)
			clients = append(clients, lib.client(t, way.URL(), &zamok.Config{TTL: ttl}))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		until := time.Now().Add(duration(t, "ZAMOK_ITEST_FAULTS", 15*time.Second))
		w := &workers{}
		var all sync.WaitGroup
		for i := range 9 {
			m := clients[i%3].Mutex("job", nil)
			all.Go(func() {
				for ctx.Err() == nil {
					w.once(t, fmt.Sprint("worker ", i), m)
				}
			})
		}
		faults := 0
		// On a slow machine it takes longer until it shows something.
		for enough := until.Add(patience); time.Now().Before(until) || w.got.Load() < leastHolds && time.Now().Before(enough); faults++ {
			w.nemesis(s, ways[rand.N(3)])
			span(rand.N(400 * time.Millisecond))
		}
		stop()
		w.undone.Wait()
		for _, way := range ways {
			way.Delay(0)
			way.Resume()
			way.KillAll()
		}
		all.Wait()
		for _, c := range clients {
			l := lock(t, c.Mutex("job", nil))
			release(t, l)
		}
		shutAll := true
		for _, c := range clients {
			all := shut(t, c)
			shutAll = shutAll && all
		}
		if shutAll && (s.has(t, "lock:job") || s.has(t, queue("job"))) {
			t.Errorf("left: %q", s.keys(t))
		}
		holds := w.check(t)
		ran := s.get(t, "count")
		t.Logf("%d faults, %d holds, %d lost, %d not acquired, counted %s", faults, len(holds), w.lost.Load(), w.refused.Load(), ran)
		var n int64
		_, _ = fmt.Sscan(ran, &n)
		if n < w.counted.Load() || n > w.counted.Load()+w.unknown.Load() {
			t.Errorf("counted %d; %d runs succeeded, of %d nobody knows", n, w.counted.Load(), w.unknown.Load())
		}
		if len(holds) < leastHolds {
			t.Error("hardly anybody held the lock, so this shows little")
		}
	})
}

type workers struct {
	history
	undone                          sync.WaitGroup // what the nemesis still undoes
	counted, unknown, lost, refused atomic.Int64
	got                             atomic.Int64 // leases
}

func (w *workers) once(t *testing.T, who string, m *zamok.Mutex) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond+rand.N(3*time.Second))
	defer cancel()
	l, err := m.Lock(ctx)
	switch {
	case err == nil:
	case errors.Is(err, zamok.ErrHeld), errors.Is(err, zamok.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		w.refused.Add(1)
		return
	default:
		t.Errorf("%s: Lock: %v", who, err)
		return
	}
	w.got.Add(1)
	end := w.held(who, l)
	long, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_, err = l.Run(long, count, []string{"count", "fence"})
	switch {
	case err == nil:
		w.counted.Add(1)
	case errors.Is(err, zamok.ErrUnknown):
		w.unknown.Add(1)
	case !errors.Is(err, zamok.ErrLost) && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s: Run: %v", who, err)
	}
	hold := rand.N(60 * time.Millisecond)
	if rand.N(40) == 0 {
		hold = 3 * time.Second // through renewals
	}
	select {
	case <-time.After(hold):
	case <-l.Context().Done():
	}
	end()
	if err := l.Release(long); errors.Is(err, zamok.ErrLost) {
		w.lost.Add(1)
	} else if err != nil && !errors.Is(err, zamok.ErrUnavailable) {
		t.Errorf("%s: Release: %v", who, err)
	}
}

// nemesis does one harm, and undoes it after a while.
func (w *workers) nemesis(s server, way *drivertest.Proxy) {
	undoIn := func(d time.Duration, undo func()) {
		w.undone.Add(1)
		time.AfterFunc(rand.N(d), func() { undo(); w.undone.Done() })
	}
	later := func(f *drivertest.Fault) { undoIn(1500*time.Millisecond, func() { f.Cancel(); f.Release() }) }
	message := func(args []string) bool { return args[0] == "message" }
	harms := []func(){
		func() { later(way.CutAfter(mutexKind.calls("job"))) },
		func() { later(way.CutBefore(mutexKind.calls("job"))) },
		func() { later(way.Hold(mutexKind.calls("job"))) },
		func() { later(way.HoldReply(mutexKind.calls("job"))) },
		func() { later(way.DropPush(message)) },
		func() { later(way.HoldPush(message)) },
		way.KillAll,
		func() { way.Delay(rand.N(40 * time.Millisecond)); undoIn(time.Second, func() { way.Delay(0) }) },
		func() { way.Blackhole(); undoIn(2500*time.Millisecond, way.Resume) },
		func() { way.Refuse(); undoIn(500*time.Millisecond, way.Accept) },
		func() { _, _ = s.Do("SCRIPT", "FLUSH") },
		func() { _, _ = s.Do("CLIENT", "KILL", "TYPE", "pubsub") },
		func() { _, _ = s.Do("CLIENT", "PAUSE", "150", "WRITE") },
	}
	harms[rand.N(len(harms))]()
}
