package itest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

func TestCase21ScriptFlushUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		const lasts = 6 * time.Second
		s := startServer(t)
		clients := []*zamok.Client{
			lib.client(t, s.URL(), &zamok.Config{TTL: 5 * time.Second}),
			lib.client(t, s.URL(), &zamok.Config{TTL: 5 * time.Second}),
		}
		until := time.Now().Add(lasts)
		over := func() bool { return time.Now().After(until) }
		var all sync.WaitGroup
		for i := range 16 {
			// Half of them each with a name of its own, half of them in one queue.
			name := "shared"
			if i%2 == 0 {
				name = fmt.Sprint("own", i)
			}
			m := clients[i%4/2].Mutex(name, nil)
			all.Go(func() {
				for n := 0; !over(); n++ {
					l, err := m.Lock(t.Context())
					if err != nil {
						t.Errorf("Lock: %v", err)
						return
					}
					if _, err := l.Run(t.Context(), writeScript, []string{"data" + name}, n); err != nil {
						t.Errorf("Run: %v", err)
					}
					if i == 0 { // through several renewals
						span(4 * time.Second)
					}
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
		flushes := 0
		for ; !over(); flushes++ {
			s.MustDo("SCRIPT", "FLUSH")
			span(10 * time.Millisecond)
		}
		all.Wait()
		did := s.Commands()
		t.Logf("%d flushes, %d EVALSHA, %d EVAL", flushes, did["evalsha"], did["eval"])
		if did["eval"] == 0 || flushes < 50 {
			t.Error("the flushes came to nothing, so this case shows nothing")
		}
	})
}

// The waiters are granted silently and look for it twice a second.
func TestCase23MayNotSubscribe(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		const waiters, lasts = 4, 5 * time.Second
		s := startServer(t)
		s.MustDo("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "resetchannels", "+@all", "-subscribe", "-psubscribe", "-ssubscribe")
		s.MustDo("ACL", "SETUSER", "nochannels", "on", ">secret", "~*", "resetchannels", "+@all")
		for _, user := range []string{"deaf", "nochannels"} {
			t.Run(user, func(t *testing.T) {
				url := strings.Replace(s.URL(), "redis://", "redis://"+user+":secret@", 1)
				holder := tryLock(t, lib.client(t, url, nil).Mutex("job", nil))
				var said atomic.Int64
				trace := &zamok.Trace{Subscription: func(err error) {
					if err == nil || !strings.Contains(err.Error(), "NOPERM") {
						t.Errorf("subscription: %v", err)
					}
					said.Add(1)
				}}
				var results []<-chan got
				for i := range waiters {
					results = append(results, goLock(t.Context(), lib.client(t, url, &zamok.Config{Trace: trace}).Mutex("job", nil)))
					within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == i+1 })
				}
				before, start := s.Commands(), time.Now()
				span(lasts)
				did := ofZamok(s.Commands().Since(before))
				rate := float64(did.Total()) / time.Since(start).Seconds() / waiters
				t.Logf("%.1f commands a second and waiter: %v", rate, did)
				if rate >= 20 {
					t.Errorf("%.1f commands a second and waiter, as the server counts; at most 20 are allowed", rate)
				}
				start = time.Now()
				release(t, holder)
				for i, result := range results {
					g := receive(t, result, "lock")
					if g.err != nil {
						t.Fatalf("waiter %d: %v", i, g.err)
					}
					if took := g.at.Sub(start); slow(start, g.at, time.Second) {
						t.Errorf("waiter %d has it after %v", i, took)
					}
					start = time.Now()
					release(t, g.lease)
				}
				if said.Load() != waiters {
					t.Errorf("%d clients said %d times that they may not subscribe", waiters, said.Load())
				}
			})
		}
	})
}
