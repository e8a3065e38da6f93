package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeFeed is a connection of the fake library below.
type fakeFeed struct {
	lib    *fakeLib
	sink   *Sink
	closed atomic.Int32
}

func (f *fakeFeed) Ping(context.Context) error {
	f.lib.pings.Add(1)
	if f.lib.answers {
		f.sink.Alive()
	}
	return nil
}

func (f *fakeFeed) Close() { f.closed.Add(1) }

// fakeLib opens connections as its fields say. All times are virtual.
type fakeLib struct {
	answers bool          // to PING
	takes   time.Duration // until Open returns, whatever its context says
	early   []string      // messages before Open returns
	fails   error
	pings   atomic.Int32
	opened  []time.Duration // since start
	start   time.Time
	feeds   []*fakeFeed
	mu      sync.Mutex // of all but pings; not held while Open takes its time
}

func (l *fakeLib) open(_ context.Context, _ string, sink *Sink) (Feed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = append(l.opened, time.Since(l.start))
	takes := l.takes
	l.mu.Unlock()
	time.Sleep(takes) // virtual
	l.mu.Lock()
	if l.fails != nil {
		return nil, l.fails
	}
	f := &fakeFeed{lib: l, sink: sink}
	l.feeds = append(l.feeds, f)
	for _, m := range l.early {
		sink.Message(m)
	}
	return f, nil
}

func (l *fakeLib) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// sinkOf returns where the n-th connection delivers.
func (l *fakeLib) sinkOf(n int) *Sink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.feeds[n].sink
}

// attempts returns the times between attempts to connect.
func (l *fakeLib) attempts() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gaps := []time.Duration{}
	for i := 1; i < len(l.opened); i++ {
		gaps = append(gaps, l.opened[i]-l.opened[i-1])
	}
	return gaps
}

// keep runs f with a subscription through the fake library; log returns its
// events so far.
func keep(t *testing.T, lib *fakeLib, f func(t *testing.T, s Subscription, log func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lib.start = time.Now()
		k := &Keeper{Open: lib.open}
		var events []string
		s, err := k.Subscribe(t.Context(), time.Minute, "ch", func(e Event) {
			at := time.Since(lib.start).Round(time.Second)
			switch e.Kind {
			case Subscribed:
				events = append(events, fmt.Sprint("subscribed ", at))
			case Message:
				events = append(events, fmt.Sprint("message ", e.Payload))
			case Broken:
				events = append(events, fmt.Sprint("broken ", at, " ", e.Err))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, func() []string {
			synctest.Wait()
			return slices.Clone(events)
		})
		s.Close()
		synctest.Wait()
		lib.mu.Lock()
		defer lib.mu.Unlock()
		for i, f := range lib.feeds {
			if n := f.closed.Load(); n != 1 {
				t.Errorf("connection %d was closed %d times", i, n)
			}
		}
	})
}

func wantLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Messages that arrive with the confirmation are handled behind Subscribed.
func TestKeeperEarlyMessages(t *testing.T) {
	keep(t, &fakeLib{answers: true, early: []string{"a", "b"}}, func(t *testing.T, _ Subscription, log func() []string) {
		wantLog(t, log(), "subscribed 0s", "message a", "message b")
	})
}

// An idle subscription is asked every 10 s and lives.
func TestKeeperIdle(t *testing.T) {
	lib := &fakeLib{answers: true}
	keep(t, lib, func(t *testing.T, _ Subscription, log func() []string) {
		time.Sleep(time.Hour + time.Second)
		wantLog(t, log(), "subscribed 0s")
		if n := lib.pings.Load(); n != 360 {
			t.Errorf("%d PINGs in an hour", n)
		}
	})
}

// A connection that died without a word is noticed after 20 s. Messages are a
// sign of life, too.
func TestKeeperSilent(t *testing.T) {
	lib := &fakeLib{}
	keep(t, lib, func(t *testing.T, _ Subscription, log func() []string) {
		for range 3 {
			time.Sleep(9 * time.Second)
			lib.sinkOf(0).Message("m")
		}
		time.Sleep(18 * time.Second)
		wantLog(t, log(), "subscribed 0s", "message m", "message m", "message m",
			"broken 40s "+errSilent.Error(), "subscribed 40s")
	})
}

// What a dead connection still delivers is not handled, and a reason is told
// once.
func TestKeeperBroken(t *testing.T) {
	lib := &fakeLib{answers: true}
	keep(t, lib, func(t *testing.T, _ Subscription, log func() []string) {
		old := lib.sinkOf(0)
		old.Broken(errors.New("cut"))
		old.Broken(errors.New("again"))
		synctest.Wait()
		old.Message("lost")
		time.Sleep(time.Second)
		synctest.Wait()
		old.Message("lost")
		lib.sinkOf(1).Message("m")
		wantLog(t, log(), "subscribed 0s", "broken 0s cut", "subscribed 0s", "message m")
	})
}

// While the server is away the attempts become rarer, from 50 ms to 2 s, and
// each ends after 5 s even if the library does not.
func TestKeeperReconnect(t *testing.T) {
	lib := &fakeLib{answers: true}
	keep(t, lib, func(t *testing.T, _ Subscription, log func() []string) {
		lib.set(func() { lib.fails = errors.New("refused") })
		lib.sinkOf(0).Broken(errors.New("cut"))
		time.Sleep(20 * time.Second)
		gaps := lib.attempts()
		if n := len(gaps); n < 13 || n > 17 || gaps[0] < firstDelay || slices.Max(gaps) > lastDelay || gaps[n-1] < lastDelay/2 {
			t.Errorf("%d attempts in 20 s, %v apart", n, gaps)
		}
		lib.set(func() { lib.fails = nil })
		time.Sleep(3 * time.Second)
		got := log()
		if len(got) != 3 || got[1] != "broken 0s cut" {
			t.Errorf("events %q", got)
		}
	})
}

// An attempt that is given up and succeeds later is closed then.
func TestKeeperLateOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := &fakeLib{start: time.Now(), takes: time.Minute, early: []string{"m"}}
		k := &Keeper{Open: lib.open}
		_, err := k.Subscribe(t.Context(), time.Second, "ch", func(e Event) { t.Errorf("event %v", e) })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(lib.start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(lib.start))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		lib.mu.Lock()
		defer lib.mu.Unlock()
		if len(lib.feeds) != 1 || lib.feeds[0].closed.Load() != 1 {
			t.Error("the late connection was not closed")
		}
	})
}

// Close during an attempt does not wait for it, and no event follows.
func TestKeeperCloseWhileConnecting(t *testing.T) {
	lib := &fakeLib{answers: true}
	keep(t, lib, func(t *testing.T, s Subscription, log func() []string) {
		lib.set(func() { lib.takes = time.Minute })
		lib.sinkOf(0).Broken(errors.New("cut"))
		time.Sleep(time.Second)
		before := time.Now()
		s.Close()
		s.Close()
		if took := time.Since(before); took != 0 {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(2 * time.Minute)
		wantLog(t, log(), "subscribed 0s", "broken 0s cut")
	})
}
