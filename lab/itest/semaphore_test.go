package itest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// permit is a child that takes a permit of two, waiting for it, and keeps it until
// its parent has gone.
func permit(c *zamok.Client) error {
	l, err := c.Semaphore("api", 2, nil).Acquire(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("held", l.Token())
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
	}
	return nil
}

// TestCase38KilledHoldersOfASemaphore: two permits back after one lease, never a
// third holder. No clock of a holder's host has a say: none is ever sent.
func TestCase38KilledHoldersOfASemaphore(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		var killed []*process
		for range 2 {
			p := start(t, lib, s.URL(), "permit")
			p.expect("held")
			killed = append(killed, p)
		}
		var taken atomic.Int32
		var waiters sync.WaitGroup
		for range 3 {
			sem := lib.client(t, s.URL(), nil).Semaphore("api", 2, nil)
			waiters.Go(func() {
				l, err := sem.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := taken.Add(1); n > 2 {
					t.Errorf("%d hold a permit of 2", n)
				}
				span(50 * time.Millisecond)
				taken.Add(-1)
				release(t, l)
			})
		}
		within(t, patience, "three wait", func() bool { return s.MustDo("ZCARD", "zamok:queue:{semaphore:api}") == int64(3) })
		if n := taken.Load(); n != 0 {
			t.Errorf("%d got one beside the living", n)
		}
		start := time.Now()
		for _, p := range killed {
			p.kill()
		}
		waiters.Wait()
		if took := time.Since(start); took > factor*childTTL+2*time.Second {
			t.Errorf("back after %v, want about one lease (%v)", took, childTTL)
		}
	})
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

func TestCase39LimitOfASemaphoreInUse(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		sem := lib.client(t, s.URL(), nil).Semaphore("api", 2, nil)
		for range 2 {
			if _, err := sem.TryAcquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan *zamok.Lease, 3)
		waiter := lib.client(t, s.URL(), nil).Semaphore("api", 2, nil)
		for range 3 {
			go func() {
				l, err := waiter.Acquire(t.Context())
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				got <- l
			}()
		}
		within(t, patience, "three wait", func() bool { return s.MustDo("ZCARD", "zamok:queue:{semaphore:api}") == int64(3) })
		if err := sem.SetLimit(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			receive(t, got, "permit of those that are new")
		}
		if u, err := sem.Usage(t.Context()); err != nil || u != (zamok.Usage{Permits: 4, InUse: 4}) {
			t.Errorf("%+v, %v", u, err)
		}
		if n := s.MustDo("ZCARD", "zamok:queue:{semaphore:api}"); n != int64(1) {
			t.Errorf("%v wait, want one", n)
		}
		if err := sem.SetLimit(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		release(t, receive(t, got, "permit"))
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
