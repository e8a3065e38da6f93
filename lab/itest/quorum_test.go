package itest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/skew"
)

// quorumMax is Config.Quarantine of the quorums here, and their TTL where nothing else
// is said.
const quorumMax = 5 * time.Second

// A quorum has no answer while a machine has no time for its servers: GiveUp is long.
var (
	quorumConfig = zamok.Config{TTL: quorumMax, Quarantine: quorumMax, GiveUp: patience}
	slowConfig   = zamok.Config{TTL: time.Minute, Quarantine: time.Minute, GiveUp: patience}
)

// Nobody waits for a node that hangs, and afterwards it has nothing of what it was
// asked for meanwhile.
func TestCase41OneOfThreeHangs(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		t.Run(nodeName(i), func(t *testing.T) {
			t.Parallel()
			all := startNodes(t, 3, quorumMax)
			c := all.client(t, i, quorumConfig)
			m := c.Mutex("job", nil)
			release(t, lock(t, m))
			all[i].Pause()
			took := make(map[string][]time.Duration)
			timed := func(what string, call func() error) {
				start := time.Now()
				if err := call(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				took[what] = append(took[what], counted(start, time.Now()))
			}
			var last int64
			for range 5 {
				var l *zamok.Lease
				timed("lock", func() (err error) { l, err = m.Lock(t.Context()); return err })
				if l == nil {
					return
				}
				timed("renew", func() error { return l.Extend(t.Context(), quorumMax) })
				timed("check", func() error { return l.Check(t.Context()) })
				timed("release", func() error { return l.Release(t.Context()) })
				if l.Fence() <= last {
					t.Errorf("fence %d after %d", l.Fence(), last)
				}
				last = l.Fence()
			}
			for what, list := range took {
				slices.Sort(list)
				t.Logf("%s: %v", what, list)
				if list[len(list)/2] > factor*100*time.Millisecond { // one may be of a busy machine
					t.Errorf("%s took %v", what, list)
				}
			}
			all[i].Resume()
			start := time.Now()
			all.mustClear(t, "job")
			t.Logf("nothing is left after %v", time.Since(start))
			if shut(t, c) && !all.clear(t, "job") {
				t.Error("something came behind that")
			}
		})
	}
}

func TestCase42EvenNumbersAreRefused(t *testing.T) {
	t.Parallel()
	all := startNodes(t, 4, quorumMax)
	for _, s := range all[:2] { // half of them have another holder, of whom no majority would know
		s.MustDo("SET", "lock:job", "somebody", "PX", "60000")
	}
	var before []drivertest.Counts
	for _, s := range all {
		before = append(before, s.Commands())
	}
	for _, n := range []int{2, 4} {
		_, err := zamok.NewQuorum(all[:n].drivers(t, 0), &quorumConfig)
		var bad *zamok.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "even") {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
	for i, s := range all {
		if did := s.Commands().Since(before[i]); did["evalsha"]+did["eval"] > 0 {
			t.Errorf("%s was asked: %v", nodeName(i), did)
		}
	}
}

// One key of three says nothing: its lease is lost, and the lock is another's.
func TestCase43OneKeyOfThreeIsAlive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fail func(s server)
		heal func(s server)
		why  []zamok.LossReason
	}{
		{"two hang", server.Pause, server.Resume, []zamok.LossReason{zamok.LostExpired}},
		{"two are down", server.Kill, server.Restart, []zamok.LossReason{zamok.LostExpired}},
		{"two restart empty", server.Restart, func(server) {}, []zamok.LossReason{zamok.LostDeleted, zamok.LostData, zamok.LostExpired}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const ttl = 2 * time.Second
			all := startNodes(t, 3, ttl)
			cfg := zamok.Config{TTL: ttl, Quarantine: ttl}
			l := lock(t, all.client(t, 0, cfg).Mutex("job", nil))
			within(t, patience, "all have it", func() bool { return all.have(t, "job") == 3 })
			for _, s := range all[1:] {
				c.fail(s)
			}
			lost := lossOf(t, l)
			if !slices.Contains(c.why, lost.Reason) {
				t.Errorf("lost as %v, want one of %v", lost.Reason, c.why)
			}
			if err := l.Check(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("Check: %v", err)
			}
			const alive = "z1/dead/1/x/1:1"
			all[0].MustDo("SET", "lock:job", alive)
			for _, s := range all[1:] {
				c.heal(s)
			}
			next := lock(t, all.client(t, 1, cfg).Mutex("job", nil)) // after their quarantine
			if next.Fence() <= l.Fence() {
				t.Errorf("fence %d after %d", next.Fence(), l.Fence())
			}
			release(t, next)
			if got := all[0].get(t, "lock:job"); got != alive {
				t.Errorf("the key of another is %q, was %q", got, alive)
			}
		})
	}
}

// A node that lost its vote does not give it to another while the lease may last.
func TestCase44AWinnersNodeRestartsEmpty(t *testing.T) {
	t.Parallel()
	all := startNodes(t, 5, time.Minute)
	for _, s := range all[3:] { // the loser's
		s.MustDo("SET", "lock:job", "z1/loser/1/x/1:1", "PX", "60000")
	}
	l := lock(t, all.client(t, 0, slowConfig).Mutex("job", nil))
	for i, s := range all[:3] {
		if got := s.get(t, "lock:job"); got != value(l) {
			t.Fatalf("%s has %q, want %q", nodeName(i), got, value(l))
		}
	}
	for _, s := range all[3:] {
		s.MustDo("DEL", "lock:job")
	}
	all[0].Restart()
	rival := all.client(t, 1, slowConfig).Mutex("job", nil)
	for range 5 {
		// Which of the two it says depends on who answers first.
		if _, err := rival.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) && !errors.As(err, new(*zamok.QuarantineError)) {
			t.Fatalf("the rival: %v", err)
		}
	}
	waiter := goLock(t.Context(), rival)
	// The next renewal finds that three of five have nothing of it, and that is too many; unless there was one
	// when the connection broke, before the first was back: that filled it in at the other two.
	lost := l.Extend(t.Context(), time.Minute)
	if lost != nil && !errors.Is(lost, zamok.ErrLost) {
		t.Errorf("Extend: %v", lost)
	}
	if err := l.Release(t.Context()); errors.Is(err, zamok.ErrLost) != (lost != nil) { // it gives up what it has
		t.Errorf("Release: %v, after Extend: %v", err, lost)
	}
	g := receive(t, waiter, "lease")
	if g.err != nil {
		t.Fatal(g.err)
	}
	if g.lease.Fence() <= l.Fence() {
		t.Errorf("fence %d after %d", g.lease.Fence(), l.Fence())
	}
	release(t, g.lease)
	all.mustClear(t, "job")
}

// A fence is larger than the one before also where the clocks of the majorities are
// hours apart.
func TestCase45ClocksApart(t *testing.T) {
	var all nodes
	for _, apart := range []time.Duration{time.Hour, 0, -time.Hour} {
		s, clock := skew.StartServer(t, time.Now().Add(apart).UnixMicro())
		all = append(all, server{s})
		goOn(t, clock, apart)
		seconds, _ := strconv.ParseInt(s.MustDo("TIME").([]any)[0].(string), 10, 64)
		if off := time.Until(time.Unix(seconds, 0)) - apart; off.Abs() > time.Minute {
			t.Fatalf("the clock is %v off where it should be", off)
		}
	}
	all.stamp(t, quorumMax)
	var clients []*zamok.Client
	for turn := range 2 {
		clients = append(clients, all.client(t, turn, quorumConfig))
	}
	var last int64
	for i := range 12 {
		all[i%3].Pause() // another majority each time
		l := lock(t, clients[i%2].Mutex("job", nil))
		if l.Fence() <= last {
			t.Errorf("fence %d after %d", l.Fence(), last)
		}
		last = l.Fence()
		release(t, l)
		all[i%3].Resume()
	}
	all.mustClear(t, "job")
}

// goOn has a clock go on, that far from this machine's, until the test ends.
func goOn(t *testing.T, clock *skew.Clock, apart time.Duration) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				if err := clock.Set(now.Add(apart).UnixMicro()); err != nil {
					t.Error(err)
					return
				}
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}
