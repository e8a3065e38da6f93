package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
)

// fourKeys are all that a break may touch.
func fourKeys(t *testing.T, name string) []string {
	t.Helper()
	set, err := keys.ForName("", name)
	if err != nil {
		t.Fatal(err)
	}
	return set.Broken()
}

// dump is what stands under these keys, and the list of events.
func dump(t *testing.T, s *memory.Server, name string) string {
	t.Helper()
	var b strings.Builder
	for _, key := range append(fourKeys(t, name), keys.Events("")) {
		switch s.Type(key) {
		case "string":
			v, _ := s.Get(key)
			left, _ := s.TTL(key)
			fmt.Fprintln(&b, key, v, left)
		case "zset":
			fmt.Fprintln(&b, key, s.ZMembers(key))
		default:
			fmt.Fprintln(&b, key, s.Type(key))
		}
	}
	return b.String()
}

func wantBroken(t *testing.T, err error, by, why string) {
	t.Helper()
	var lost *zamok.LostError
	if !errors.As(err, &lost) || lost.Reason != zamok.LostBroken || lost.Operator != by || lost.Why != why {
		t.Errorf("the holder is told %v; want that %q broke it for %q", err, by, why)
	}
}

func TestBreakAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		lease := hold(t, service(t, server, zamok.Config{Name: "mailer"}), "a", nil)
		got := make(chan *zamok.Lease, 1)
		next := process(t, server, "")
		go func() {
			l, err := next.Mutex("a", nil).Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		time.Sleep(2 * time.Second)
		b, err := in.Break(t.Context(), show(t, in, "a"), &inspect.BreakConfig{By: "alice@web-1", Why: "it is stuck: see #12!"})
		if err != nil || !b.Asked || b.Left <= 8*time.Second || b.Left > 15*time.Second || b.Next.Token != "" || b.AuditErr != nil {
			t.Fatalf("%+v, %v", b, err)
		}
		if b.Name != "a" || b.Key != "lock:a" || b.Holder.Token != lease.Token() || b.Fence != lease.Fence() || b.By != "alice@web-1" || b.Why != "it is stuck: see #12!" {
			t.Errorf("%+v", b)
		}
		l := show(t, in, "a")
		if !l.Held || l.First().Holder.Token != lease.Token() || l.First().Fence != lease.Fence() || l.First().Broken == nil || *l.First().Broken != (inspect.BrokenBy{By: b.By, Why: b.Why}) || l.First().Late != 0 {
			t.Errorf("while it stops: %+v, %+v", l, l.First().Broken)
		}
		again, err := in.Break(t.Context(), l, &inspect.BreakConfig{By: "bob", Why: "me too"})
		if err != nil || !again.Asked || again.By != "alice@web-1" || again.Why != b.Why {
			t.Errorf("asked again: %+v, %v; want the first asker's words", again, err)
		}
		if list := events(t, in, "", 0); len(list) != 2 || list[0].By != "alice@web-1" || list[1].By != "bob" || list[1].Why != "me too" || list[1].Now {
			t.Errorf("the list of events: %+v; want who asked each time", list)
		}
		<-lease.Context().Done()
		wantBroken(t, context.Cause(lease.Context()), "alice@web-1", "it is stuck: see #12!")
		time.Sleep(time.Second) // it stops its work
		if len(got) > 0 {
			t.Error("the next has it before the holder released it")
		}
		_ = lease.Release(t.Context())
		if l := <-got; l != nil {
			l.Release(t.Context())
		}
	})
}

func TestBreakNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		lease := hold(t, process(t, server, ""), "a", nil)
		alone := hold(t, process(t, server, ""), "b", nil)
		next := process(t, server, "")
		got := make(chan *zamok.Lease, 1)
		go func() {
			l, err := next.Mutex("a", nil).Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		time.Sleep(time.Second)
		cfg := &inspect.BreakConfig{By: "alice", Why: "gone", Now: true}
		b, err := in.Break(t.Context(), show(t, in, "a"), cfg)
		l := <-got
		if err != nil || b.Asked || b.Left != 0 || b.Next.Token != l.Token() || b.NextFence != l.Fence() || b.AuditErr != nil {
			t.Errorf("with a waiter: %+v, %v", b, err)
		}
		b, err = in.Break(t.Context(), show(t, in, "b"), cfg)
		if err != nil || b.Asked || b.Next != (zamok.Holder{}) || b.NextFence != 0 || show(t, in, "b").Held {
			t.Errorf("without one: %+v, %v", b, err)
		}
		for _, old := range []*zamok.Lease{lease, alone} {
			<-old.Context().Done()
			wantBroken(t, context.Cause(old.Context()), "alice", "gone")
		}
		if l.Err() != nil {
			t.Errorf("the next lost it: %v", l.Err())
		}
	})
}

// changes is what may happen between the look and the break, so that the holder
// that was shown is no more; each is handed the lease of that holder.
var changes = map[string]func(t *testing.T, s *memory.Server, lease *zamok.Lease, owner, other *zamok.Client){
	"released": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, _, _ *zamok.Client) { drop(t, lease) },
	"expired":  func(_ *testing.T, s *memory.Server, _ *zamok.Lease, _, _ *zamok.Client) { s.Del("lock:a") },
	"retaken by its own client": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, owner, _ *zamok.Client) {
		drop(t, lease)
		hold(t, owner, "a", nil)
	},
	"taken by another": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, _, other *zamok.Client) {
		drop(t, lease)
		hold(t, other, "a", nil)
	},
	"handed over": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, _, other *zamok.Client) {
		got := make(chan error, 1)
		go func() { _, err := other.Mutex("a", nil).Lock(context.WithoutCancel(t.Context())); got <- err }()
		synctest.Wait()
		drop(t, lease)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	},
	"resumed": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, _, other *zamok.Client) {
		token, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Mutex("a", nil).Resume(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	},
	"resumed by its own client": func(t *testing.T, _ *memory.Server, lease *zamok.Lease, owner, _ *zamok.Client) {
		token, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Mutex("a", nil).Resume(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	},
	"at rest": func(t *testing.T, s *memory.Server, lease *zamok.Lease, _, _ *zamok.Client) {
		s.Set("lock:a", "z1-rest/"+strings.TrimPrefix(lease.Token(), "z1/")+fmt.Sprint(":", lease.Fence()), time.Minute)
	},
	"taken by a foreign program": func(_ *testing.T, s *memory.Server, _ *zamok.Lease, _, _ *zamok.Client) {
		s.Set("lock:a", "x", time.Minute)
	},
	"taken, with an empty value": func(_ *testing.T, s *memory.Server, _ *zamok.Lease, _, _ *zamok.Client) {
		s.Set("lock:a", "", time.Minute)
	},
	"taken by one of a longer name": func(_ *testing.T, s *memory.Server, l *zamok.Lease, _, _ *zamok.Client) {
		s.Set("lock:a", l.Token()+"0:7", time.Minute)
	},
	"taken by one of a shorter name": func(_ *testing.T, s *memory.Server, l *zamok.Lease, _, _ *zamok.Client) {
		s.Set("lock:a", strings.TrimSuffix(l.Token(), l.Token()[len(l.Token())-1:])+":7", time.Minute)
	},
}

func drop(t *testing.T, lease *zamok.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBreakHitsNoOther: whoever has come after the holder that was shown keeps the
// lock, those who wait their places, and nothing is written down.
func TestBreakHitsNoOther(t *testing.T) {
	for what, change := range changes {
		for _, now := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/now=%v", what, now), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := memory.New()
					in := inspector(t, server, "")
					owner, other := process(t, server, ""), process(t, server, "")
					lease := hold(t, owner, "a", nil)
					shown := show(t, in, "a")
					change(t, server, lease, owner, other)
					if server.Type("lock:a") != "none" {
						server.ZAdd("zamok:queue:{lock:a}", "w|z1/h/1/x/1|15000|-", 1) // one that polls
					}
					before, there := dump(t, server, "a"), show(t, in, "a")
					var changed *inspect.ChangedError
					b, err := in.Break(t.Context(), shown, &inspect.BreakConfig{Why: "x", Now: now})
					if !errors.Is(err, inspect.ErrChanged) || !errors.As(err, &changed) || changed.Name != "a" || changed.Now != there.First().Holder || changed.Fence != there.First().Fence {
						t.Errorf("%+v, %v; the holder is %+v", b, err, there.First().Holder)
					}
					if after := dump(t, server, "a"); after != before {
						t.Errorf("before:\n%safter:\n%s", before, after)
					}
					server.Del("lock:a", "zamok:queue:{lock:a}")
				})
			})
		}
	}
}

// A foreign holder is known by all that it wrote, however long, and by nothing
// shorter or longer.
func TestBreakForeign(t *testing.T) {
	long := strings.Repeat("v", 300)
	for _, c := range []struct{ shown, now string }{
		{"v", "v"}, {"v", "v:1"}, {"v", "v!1"}, {"v", "vv"}, {"vv", "v"}, {"v", ""}, {"", ""}, {"", ":1"}, {"", "v"}, {"host:1", "host:12"}, {"host:1", "host:1:1"},
		{long, long}, {long, long + "v"}, {long, long[:299]}, {long, long[:256]}, {long[:256], long}, {long, long[:299] + "w"}, {long[:255], long[:256]}, {long[:257], long[:256]},
		{long[:256], long[:256]}, {long[:256], long[:255]}, {"z1", "z1"}, {"z1", "z1:1"}, {"a\x00b\xff", "a\x00b\xff"}, {"a\x00b\xff", "a\x00b"},
	} {
		t.Run(fmt.Sprintf("%.10q then %.10q of %d", c.shown, c.now, len(c.now)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New()
				in := inspector(t, server, "")
				server.Set("lock:a", c.shown, time.Minute)
				shown := show(t, in, "a")
				server.Set("lock:a", c.now, time.Minute)
				before := dump(t, server, "a")
				want := inspect.ErrDeaf
				if c.shown != c.now {
					want = inspect.ErrChanged
				}
				if b, err := in.Break(t.Context(), shown, &inspect.BreakConfig{Why: "x"}); !errors.Is(err, want) || dump(t, server, "a") != before {
					t.Errorf("asked: %+v, %v; want %v", b, err, want)
				}
				b, err := in.Break(t.Context(), shown, &inspect.BreakConfig{Why: "x", Now: true})
				if c.shown != c.now {
					if !errors.Is(err, inspect.ErrChanged) || dump(t, server, "a") != before {
						t.Errorf("taken: %+v, %v; want ErrChanged", b, err)
					}
					return
				}
				if err != nil || b.Asked || b.Fence != 0 || show(t, in, "a").Held {
					t.Errorf("taken: %+v, %v", b, err)
				}
			})
		})
	}
}

// A lock at rest has nobody to be asked, and can be taken.
func TestBreakRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		if err := c.Mutex("a", &zamok.MutexConfig{MinHold: time.Hour}).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Break(t.Context(), show(t, in, "a"), &inspect.BreakConfig{Why: "x"}); !errors.Is(err, inspect.ErrDeaf) {
			t.Errorf("asked: %v", err)
		}
		if b, err := in.Break(t.Context(), show(t, in, "a"), &inspect.BreakConfig{Why: "x", Now: true}); err != nil || !b.Holder.Resting || show(t, in, "a").Held {
			t.Errorf("taken: %+v, %v", b, err)
		}
	})
}

// A lock with a key of its own is broken under that key.
func TestBreakKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		lease := hold(t, process(t, server, ""), "a", &zamok.MutexConfig{Key: "old"})
		other := hold(t, process(t, server, ""), "a", nil)
		l, err := in.ShowKey(t.Context(), "old")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := in.Break(t.Context(), l, &inspect.BreakConfig{Why: "x", Now: true}); err != nil || b.Key != "old" {
			t.Errorf("%+v, %v", b, err)
		}
		<-lease.Context().Done()
		if _, held := server.Get("old"); held || other.Err() != nil {
			t.Error("the other lock was broken")
		}
	})
}
