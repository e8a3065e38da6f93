package zamok_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
)

// members are n servers of a quorum, each stamped as new.
type members []*memory.Server

func newMembers(t *testing.T, n int) members {
	all := make(members, n)
	for i := range all {
		all[i] = memory.New()
		all[i].Latency(time.Millisecond)
	}
	for _, s := range all {
		all.stamp(t, s)
	}
	return all
}

// stamp says of one that it is new.
func (all members) stamp(t *testing.T, s *memory.Server) {
	names := make([]string, len(all))
	for i := range all {
		names[i] = fmt.Sprint("m", i)
	}
	call := driver.Call{Script: lua.Stamp, Keys: []string{"zamok:node"}, Args: []string{"3000 " + strings.Join(names, ",")}, Limit: time.Second}
	if _, err := s.Eval(t.Context(), call); err != nil {
		t.Log(err) // a fault
	}
}

func (all members) client(t *testing.T) *zamok.Client {
	t.Helper()
	return all.clientOver(t, nil)
}

// clientOver makes a client that has its members by drivers of their own.
func (all members) clientOver(t *testing.T, over func(driver.Driver) driver.Driver) *zamok.Client {
	t.Helper()
	nodes := make([]zamok.Node, len(all))
	for i, s := range all {
		nodes[i] = zamok.Node{Name: fmt.Sprint("m", i), Driver: s}
		if over != nil {
			nodes[i].Driver = over(s)
		}
	}
	c, err := zamok.NewQuorum(nodes, &zamok.Config{TTL: 3 * time.Second, Quarantine: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func inQuorum(t *testing.T, n int, f func(t *testing.T, all members)) {
	synctest.Test(t, func(t *testing.T) { f(t, newMembers(t, n)) })
}

func (all members) left(t *testing.T) {
	t.Helper()
	for i, s := range all {
		for _, key := range s.Keys() {
			if key == "lock:job" || key == "zamok:queue:{lock:job}" {
				t.Errorf("%s is left on m%d", key, i)
			}
		}
	}
}

func TestQuorumLocksAndReleasesEverywhere(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.client(t).Mutex("job", nil)
		var last int64
		for range 5 {
			l := lock(t, m)
			if l.Fence() <= last {
				t.Errorf("fence %d after %d", l.Fence(), last)
			}
			last = l.Fence()
			if _, err := all.client(t).Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("a second one: %v", err)
			}
			pass(10 * time.Second)
			release(t, l)
		}
		pass(5 * time.Second)
		all.left(t)
	})
}

// TestQuorumWithAHungMember is case 41.
func TestQuorumWithAHungMember(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.client(t).Mutex("job", nil)
		release(t, lock(t, m))
		all[1].Hang()
		for range 10 {
			start := time.Now()
			l := lock(t, m)
			locked := time.Since(start)
			pass(5 * time.Second)
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
			start = time.Now()
			release(t, l)
			if took := time.Since(start); took > 100*time.Millisecond || locked > 100*time.Millisecond {
				t.Errorf("lock %v, release %v", locked, took)
			}
		}
		all[1].Unhang()
		pass(10 * time.Second)
		all.left(t)
	})
}

// TestQuorumWithClocksApart is case 45.
func TestQuorumWithClocksApart(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		all[0].Step(time.Hour)
		all[2].Step(-time.Hour)
		pass(time.Minute)
		var last int64
		for i := range 30 {
			all[i%3].Hang() // another majority each time
			l := lock(t, all.client(t).Mutex("job", nil))
			if l.Fence() <= last {
				t.Errorf("fence %d after %d", l.Fence(), last)
			}
			last = l.Fence()
			release(t, l)
			all[i%3].Unhang()
			pass(time.Second)
		}
	})
}

func TestQuorumRefusesEvenNumbersAndDuplicates(t *testing.T) {
	a, b, c := memory.New(), memory.New(), memory.New()
	for _, nodes := range [][]zamok.Node{
		{{"a", a}, {"b", b}}, {{"a", a}}, {{"a", a}, {"b", b}, {"c", c}, {"d", memory.New()}},
		{{"a", a}, {"b", b}, {"b", c}}, {{"a", a}, {"b", b}, {"c", b}}, {{"a", a}, {"b", b}, {"c,d", c}}, {{"a", a}, {"b", b}, {"c", nil}},
	} {
		var bad *zamok.ConfigError
		if _, err := zamok.NewQuorum(nodes, nil); !errors.As(err, &bad) {
			t.Errorf("%v: %v, want a *ConfigError", nodes, err)
		}
	}
}

// TestQuorumOf64Contenders: nobody starves all, ties are broken.
func TestQuorumOf64Contenders(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		var wg sync.WaitGroup
		start := time.Now()
		for range 64 {
			m := all.client(t).Mutex("job", nil)
			wg.Go(func() {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				pass(time.Millisecond)
				release(t, l)
			})
		}
		wg.Wait()
		t.Logf("64 took %v", time.Since(start))
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		pass(5 * time.Second)
		all.left(t)
	})
}
