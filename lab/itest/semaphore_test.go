package itest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/skew"
)

// TestCase38KilledHoldersOfASemaphore: two permits back after one lease, never a
// third holder.
func TestCase38KilledHoldersOfASemaphore(t *testing.T) {
	each(t, func(t *testing.T, lib library) { killedHolders(t, lib, startServer(t)) })
}

// Here the host of every holder is 61 s ahead of the server, or behind: the end of
// a lease is by the server's clock, and no other has a say. Not in parallel: the
// server is started with another clock by the test's environment.
func TestCase38HostsClocksAreWrong(t *testing.T) {
	for _, ahead := range []time.Duration{61 * time.Second, -61 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			s, clock := skew.StartServer(t, time.Now().Add(-ahead).UnixMicro())
			stop, stopped := make(chan struct{}), make(chan error)
			go func() {
				var err error
				for tick := time.NewTicker(time.Millisecond); err == nil; {
					select {
					case now := <-tick.C:
						err = clock.Set(now.Add(-ahead).UnixMicro())
					case <-stop:
						stopped <- nil
						return
					}
				}
				stopped <- err
			}()
			killedHolders(t, libraries[0], server{s})
			close(stop)
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

func killedHolders(t *testing.T, lib library, s server) {
	var killed []*process
	for range 2 {
		p := start(t, lib, s.URL(), "holder", kindEnv+"="+pairKind.name)
		p.expect("held")
		killed = append(killed, p)
	}
	h := history{room: 2}
	var waiters sync.WaitGroup
	for i := range 3 {
		sem := pairKind.of(lib.client(t, s.URL(), nil), "job", nil)
		waiters.Go(func() {
			l, err := sem.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			end := h.held(fmt.Sprint("waiter ", i), l)
			span(50 * time.Millisecond)
			end()
			release(t, l)
		})
	}
	within(t, patience, "three wait", func() bool { return pairKind.waiting(t, s, "job") == 3 })
	before := s.now(t)
	start := time.Now()
	for _, p := range killed {
		p.kill()
	}
	if n := pairKind.waiting(t, s, "job"); n != 3 && s.now(t).Sub(before) < childTTL/2 {
		t.Errorf("%d wait: one got a permit before a lease was over", n)
	}
	waiters.Wait()
	took := counted(start, time.Now())
	t.Logf("both are back after %v", took)
	if took > factor*childTTL+2*time.Second {
		t.Errorf("back after %v, want about one lease (%v)", took, childTTL)
	}
	if holds := h.check(t); len(holds) != 3 {
		t.Errorf("%d holds", len(holds))
	}
}

// TestSemaphoreOfManyProcesses: never more than its permits at a time, and every
// hand-over in order.
func TestSemaphoreOfManyProcesses(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		const clients, rounds, permits = 12, 100, 3
		s := startServer(t)
		var in, most atomic.Int32
		var done sync.WaitGroup
		for range clients {
			sem := lib.client(t, s.URL(), nil).Semaphore("api", permits, nil)
			done.Go(func() {
				for range rounds {
					err := sem.Do(t.Context(), func(ctx context.Context) error {
						for n := in.Add(1); ; {
							old := most.Load()
							if n <= old || most.CompareAndSwap(old, n) {
								break
							}
						}
						in.Add(-1)
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done.Wait()
		if n := most.Load(); n > permits {
			t.Errorf("%d at a time", n)
		}
		within(t, patience, "nothing is left", func() bool {
			return !s.has(t, "semaphore:api") && !s.has(t, "zamok:queue:{semaphore:api}")
		})
	})
}

// TestCase39LimitOfASemaphoreInUse: from 5 to 2, and to 10.
func TestCase39LimitOfASemaphoreInUse(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		sem := lib.client(t, s.URL(), nil).Semaphore("job", 5, nil)
		used := func(want zamok.Usage) {
			t.Helper()
			if u, err := sem.Usage(t.Context()); err != nil || u != want {
				t.Errorf("%+v, %v, want %+v", u, err, want)
			}
		}
		var holders []*zamok.Lease
		for range 5 {
			holders = append(holders, tryLock(t, permits{sem}))
		}
		waiter := permits{lib.client(t, s.URL(), nil).Semaphore("job", 5, nil)}
		var results []<-chan got
		for i := range 6 {
			results = append(results, goLock(t.Context(), waiter))
			within(t, patience, "it waits", func() bool { return pairKind.waiting(t, s, "job") == i+1 })
		}
		if err := sem.SetLimit(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		used(zamok.Usage{Permits: 2, InUse: 5})
		for i, l := range holders[:3] {
			release(t, l)
			used(zamok.Usage{Permits: 2, InUse: 4 - i})
		}
		if n := pairKind.waiting(t, s, "job"); n != 6 {
			t.Errorf("%d wait, want 6: above the new limit nobody is let in", n)
		}
		release(t, holders[3])
		inTime(t, "the first waiter", results[0], time.Now())
		used(zamok.Usage{Permits: 2, InUse: 2})

		start := time.Now()
		if err := sem.SetLimit(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		for i, r := range results[1:] {
			inTime(t, fmt.Sprint("waiter ", i+2), r, start)
		}
		used(zamok.Usage{Permits: 10, InUse: 7})
		for range 3 {
			tryLock(t, permits{sem})
		}
		if _, err := sem.TryAcquire(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("the eleventh of ten: %v", err)
		}
	})
}

// TestSemaphoreUnderAScript: what the real server runs.
func TestSemaphoreUnderAScript(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		sem := lib.client(t, s.URL(), nil).Semaphore("api", 2, nil)
		l, err := sem.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Run(t.Context(), writeScript, []string{"data"}, "x"); err != nil || s.get(t, "data") != "x" {
			t.Errorf("%v, wrote %q", err, s.get(t, "data"))
		}
		s.MustDo("DEL", "semaphore:api")
		if _, err := l.Run(t.Context(), writeScript, []string{"data"}, "y"); !errors.Is(err, zamok.ErrLost) || s.get(t, "data") != "x" {
			t.Errorf("%v, wrote %q", err, s.get(t, "data"))
		}
	})
}

// TestCommandsOfASemaphore: as few with 10,000 permits as with ten.
func TestCommandsOfASemaphore(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		cost := func(permits, held int) string {
			name := fmt.Sprint("sem-", permits)
			sem := c.Semaphore(name, permits, nil)
			others := []string{"ZADD", "semaphore:" + name}
			for i := range held {
				others = append(others, "9000000000000", fmt.Sprint("z1/h/1/r/", i))
			}
			s.MustDo(others...)
			before := s.Commands()
			for range 100 {
				l, err := sem.TryAcquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				release(t, l)
			}
			did := withoutLibraries(s.Commands().Since(before))
			said := did["zremrangebyscore"] - 200 // what the client says of itself
			for _, name := range []string{"evalsha", "time", "zadd", "zremrangebyscore", "pttl", "set"} {
				did[name] -= said
			}
			if n := requests(did); n != 200 {
				t.Errorf("%d permits: %d requests for 100 cycles", permits, n)
			}
			delete(did, "pexpire") // only if the semaphore would end before
			return fmt.Sprint(did)
		}
		few, many := cost(10, 5), cost(10_000, 5_000)
		if few != many {
			t.Errorf("10 permits: %s\n10,000 permits: %s", few, many)
		}
		t.Log(few)
	})
}

// TestSemaphoreAndTheServersMemory: a full one gives permits, and an empty one has
// forgotten the limit that was set.
func TestSemaphoreAndTheServersMemory(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "noeviction")
		sem := lib.client(t, s.URL(), nil).Semaphore("api", 2, nil)
		if err := sem.SetLimit(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		fill(t, s)
		l, err := sem.TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("with full memory: %v", err)
		}
		s.MustDo("FLUSHALL")
		if u, err := sem.Usage(t.Context()); err != nil || u != (zamok.Usage{Permits: 2}) {
			t.Errorf("of an empty server: %+v, %v", u, err)
		}
		if err := l.Check(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the permit that it had: %v", err)
		}
	})
}
