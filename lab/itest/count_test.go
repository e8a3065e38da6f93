package itest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// What is promised, in commands as the server counts them: those that a script
// runs are counted too.
const (
	mostOfACycle     = 9
	mostContended    = 20
	requestsOfACycle = 2
	requestsOfATurn  = 2 // of a contended acquisition: it stands in the queue, and hands over
)

// ofZamok leaves out what the libraries send of their own accord, what is asked
// once in the life of a client, and what clients say of themselves: that is at
// most one request a second of each, whatever it does meanwhile (the root's
// TestPresenceRate). No other script runs ZREMRANGEBYSCORE.
func ofZamok(c drivertest.Counts) drivertest.Counts {
	if said := c["zremrangebyscore"]; said > 0 {
		for _, name := range []string{"evalsha", "time", "zadd", "zremrangebyscore", "pttl", "pexpire", "set"} {
			c[name] -= min(said, c[name])
		}
	}
	return withoutLibraries(c)
}

func withoutLibraries(c drivertest.Counts) drivertest.Counts {
	for name := range c {
		if name == "ping" || name == "hello" || name == "script|load" || name == "command" || strings.HasPrefix(name, "client") {
			delete(c, name)
		}
	}
	return c
}

func requests(c drivertest.Counts) int64 {
	return c["evalsha"] + c["eval"] + c["subscribe"] + c["unsubscribe"]
}

func TestCommandsOfAnUncontendedCycle(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		const cycles = 100
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		release(t, tryLock(t, c.Mutex("warm", nil)))
		for name, acquire := range map[string]func(m *zamok.Mutex) *zamok.Lease{
			"Lock":    func(m *zamok.Mutex) *zamok.Lease { return lock(t, m) },
			"TryLock": func(m *zamok.Mutex) *zamok.Lease { return tryLock(t, m) },
		} {
			before := s.Commands()
			for range cycles {
				release(t, acquire(c.Mutex("job", nil)))
			}
			did := ofZamok(s.Commands().Since(before))
			if n := did.Total(); n > mostOfACycle*cycles {
				t.Errorf("%s: %d cycles ran %d commands: %v", name, cycles, n, did)
			}
			if n := requests(did); n != requestsOfACycle*cycles {
				t.Errorf("%s: %d cycles sent %d requests: %v", name, cycles, n, did)
			}
			t.Logf("%s: %.2f commands a cycle", name, float64(did.Total())/cycles)
		}

		// Each script once more as a whole text, when the server has lost it.
		before := s.Commands()
		s.MustDo("SCRIPT", "FLUSH")
		release(t, tryLock(t, c.Mutex("job", nil)))
		did := s.Commands().Since(before)
		if did["evalsha"] != 2 || did["eval"] != 2 || did["script|load"] != 0 {
			t.Errorf("the cycle after a flush: %v", did)
		}
		before = s.Commands()
		release(t, tryLock(t, c.Mutex("job", nil)))
		if did := s.Commands().Since(before); did["evalsha"] != 2 || did["eval"] != 0 {
			t.Errorf("the next cycle: %v", did)
		}
	})
}

// All who wait are handed the lock in turn, so what one of them costs must not
// depend on how many they are. The time is bounded, because whoever waits looks
// again after seconds, which is another cost, of waiting.
func TestCommandsOfAContendedAcquisition(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		first := lib.client(t, s.URL(), nil)
		var waiters []*zamok.Client
		for range 200 {
			waiters = append(waiters, lib.client(t, s.URL(), nil))
		}
		s.contend(t, first, waiters) // subscribes them all
		var costs []float64
		for _, n := range []int{2, 20, 200} {
			did, ok := s.contend(t, first, waiters[:n]), false
			for try := 0; try < 5 && !ok; try++ {
				start := time.Now()
				did = s.contend(t, first, waiters[:n])
				ok = time.Since(start) < 1500*time.Millisecond
			}
			if !ok {
				t.Logf("%d waiters: too slow a machine to count without looks", n)
			}
			each := float64(did.Total()) / float64(n)
			if ok {
				costs = append(costs, each)
			}
			t.Logf("%d waiters: %.2f commands, %.2f requests each: %v", n, each, float64(requests(did))/float64(n), did)
			if ok && each > mostContended {
				t.Errorf("%d waiters: %.2f commands each, at most %d are allowed", n, each, mostContended)
			}
			if ok && requests(did) != int64(requestsOfATurn*n) {
				t.Errorf("%d waiters: %d requests, not %d each", n, requests(did), requestsOfATurn)
			}
		}
		if len(costs) > 1 && slices.Max(costs)-slices.Min(costs) > 2 {
			t.Errorf("the cost is not flat: %.2f", costs)
		}
	})
}

// contend lets the waiters queue up behind one holder and pass the lock on. It
// counts as many acquisitions as releases that hand over: the last who gets the
// lock keeps it until that is done.
func (s server) contend(t *testing.T, first *zamok.Client, waiters []*zamok.Client) drivertest.Counts {
	t.Helper()
	l := lock(t, first.Mutex("job", nil))
	before := s.Commands()
	done := make(chan error, len(waiters))
	last := make(chan *zamok.Lease, 1)
	var acquired atomic.Int64
	for i, c := range waiters {
		go func() {
			l, err := c.Mutex("job", nil).Lock(t.Context())
			if err == nil && acquired.Add(1) == int64(len(waiters)) {
				last <- l
			} else if err == nil {
				err = l.Release(t.Context())
			}
			done <- err
		}()
		if i%20 == 19 || i == len(waiters)-1 {
			within(t, patience, "they wait", func() bool { return s.waiting(t, "job") >= i+1 })
		}
	}
	looks := s.Commands().Since(before)["zcard"]
	release(t, l)
	for range waiters {
		if err := receive(t, done, "end of a waiter"); err != nil {
			t.Fatal(err)
		}
	}
	did := ofZamok(s.Commands().Since(before))
	release(t, <-last)
	delete(did, "zcard") // ours
	if looks == 0 {
		t.Fatal("nobody waited")
	}
	return did
}

func TestNothingIsLeftBehind(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		a, b := lib.client(t, s.URL(), nil), lib.client(t, s.URL(), nil)
		l := tryLock(t, a.Mutex("job", &zamok.MutexConfig{Reason: "tests"}))
		result := goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
		if _, err := l.Run(t.Context(), writeScript, []string{"zamok:test:data"}, "x"); err != nil {
			t.Fatal(err)
		}
		s.MustDo("DEL", "zamok:test:data")
		tryLock(t, a.Mutex("held when the client closes", nil))
		for _, k := range s.keys(t) {
			switch ttl := s.pttl(t, k); {
			case strings.HasPrefix(k, "zamok:fence:"):
				if ttl != -time.Millisecond {
					t.Errorf("%s has a TTL of %v: fences must not expire", k, ttl)
				}
			case ttl <= 0 || ttl > time.Hour:
				t.Errorf("%s has a TTL of %v", k, ttl)
			}
		}
		release(t, l)
		if g := receive(t, result, "lock"); g.err != nil {
			t.Fatal(g.err)
		}
		for _, c := range []*zamok.Client{a, b} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		for i := range 200 { // closed right behind the lock, when it says who it is
			c := lib.client(t, s.URL(), nil)
			tryLock(t, c.Mutex(fmt.Sprint("quick", i), nil))
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, k := range s.keys(t) {
			if !strings.HasPrefix(k, "zamok:fence:") && !strings.HasPrefix(k, "zamok:call:") {
				t.Errorf("%s is left, with a TTL of %v", k, s.pttl(t, k))
			}
		}
		within(t, patience, "no subscription is left", func() bool {
			channels, _ := s.MustDo("PUBSUB", "CHANNELS").([]any)
			return len(channels) == 0
		})
	})
}
