package zamok_test

import (
	"hash/fnv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
)

// home is the member that has the queue of the lock "job".
func (all members) home() *memory.Server {
	h := fnv.New32a()
	h.Write([]byte("lock:job"))
	return all[h.Sum32()%uint32(len(all))]
}

// goLock waits for the lock in another goroutine.
func goLock(t *testing.T, m *zamok.Mutex) <-chan *zamok.Lease {
	got := make(chan *zamok.Lease, 1)
	go func() {
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

// Whoever becomes the first knows it, so that a holder who dies is noticed when its
// lease ends, however many waited.
func TestQuorumHolderDiesBehindAQueue(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		const n = 30
		first := lock(t, all.client(t).Mutex("job", nil))
		got := make(chan *zamok.Lease, n)
		for range n {
			m := all.client(t).Mutex("job", nil)
			go func() {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			pass(10 * time.Millisecond)
		}
		pass(100 * time.Millisecond)
		release(t, first)
		for range n - 2 {
			l := <-got
			pass(time.Millisecond)
			release(t, l)
		}
		if l := <-got; l != nil {
			all.dies(t, l)
		}
		start := time.Now()
		l := <-got
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("the TTL is 3 s, all members are well, and the last one waited for %v", took)
		}
		release(t, l)
	})
}

// dies has nobody renew a lease any more.
func (all members) dies(t *testing.T, l *zamok.Lease) {
	t.Helper()
	token := l.Token()
	for _, s := range all {
		s.Intercept(func(c driver.Call) memory.Fault {
			return memory.Fault{DropRequest: c.Script.Name() == "renew" && c.Args[0] == token}
		})
	}
}

// One that is heard and does nothing, a process that was stopped say, holds up those
// behind it for 2 s, once for each time that it is told.
func TestQuorumFrozenWaiter(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		sub, err := all.home().Subscribe(t.Context(), time.Second, "zamok:inbox:frozen", func(driver.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		l := lock(t, all.client(t).Mutex("job", nil))
		call := driver.Call{Script: lua.Line, Keys: []string{"lock:job", "zamok:queue:{lock:job}"}, Args: []string{"z1/h/1/x/1", "3000", "zamok:inbox:frozen", "0", "w"}, Limit: time.Second}
		if _, err := all.home().Eval(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		slow := 0
		for i := range 5 {
			got := goLock(t, all.client(t).Mutex("job", nil))
			pass(100 * time.Millisecond)
			start := time.Now()
			release(t, l)
			l = <-got
			took := time.Since(start)
			if took > 100*time.Millisecond {
				slow++
			}
			if took > 2500*time.Millisecond {
				t.Errorf("hand-over %d took %v", i, took)
			}
		}
		release(t, l)
		if slow > 1 {
			t.Errorf("%d hand-overs were slow", slow)
		}
	})
}

// A request to join the queue that comes when its caller has gone leaves nobody there.
func TestQuorumLateLine(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		var once atomic.Bool
		all.home().Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "line" && once.CompareAndSwap(false, true) {
				return memory.Fault{Delay: 2500 * time.Millisecond}
			}
			return memory.Fault{}
		})
		got := goLock(t, all.client(t).Mutex("job", nil))
		pass(2200 * time.Millisecond)
		release(t, l)
		release(t, <-got)
		pass(time.Minute)
		for i, s := range all {
			if m := s.ZMembers("zamok:queue:{lock:job}"); len(m) > 0 {
				t.Errorf("a minute after all is over %v stands in the queue of member %d", m, i)
			}
		}
	})
}

// Who waits is told of a release also where the member with the queue had no vote.
func TestQuorumQueueWithoutAVote(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c, m := all.client(t), all.client(t).Mutex("job", nil)
		restartEmpty(all.home())
		l := lock(t, c.Mutex("job", nil))
		got := goLock(t, m)
		pass(500 * time.Millisecond)
		start := time.Now()
		release(t, l)
		l = <-got
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("the hand-over took %v", took)
		}
		release(t, l)
	})
}

// A member that hangs with the queue is no reason to drop the subscriptions at the others.
func TestQuorumKeepsItsSubscriptions(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c := all.client(t)
		l := lock(t, all.client(t).Mutex("job", nil))
		got := goLock(t, c.Mutex("job", nil))
		pass(3 * time.Second)
		subs := func() (n int) {
			for _, s := range all {
				n += s.Subscribers("zamok:inbox:" + c.ID())
			}
			return n
		}
		before := subs()
		all.home().Hang()
		for range 1500 {
			pass(10 * time.Millisecond)
			if n := subs(); n < before {
				t.Fatalf("%d of %d are left", n, before)
			}
		}
		all.home().Unhang()
		pass(3 * time.Second)
		release(t, l)
		release(t, <-got)
	})
}
