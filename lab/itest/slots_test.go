package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
)

// slots is a driver that complains about a call whose keys lie in several slots
// of a cluster, and counts the calls about locks: a client says who it is at any
// time.
type slots struct {
	driver.Driver
	mu    sync.Mutex
	calls int
	bad   []string
}

func (s *slots) look(calls ...driver.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		if slices.Contains([]string{"acquire", "release", "renew", "resume", "inspect"}, call.Script.Name()) {
			s.calls++
		}
		for _, key := range call.Keys {
			if keys.Slot(key) != keys.Slot(call.Keys[0]) {
				s.bad = append(s.bad, fmt.Sprintf("%s: %q", call.Script.Name(), call.Keys))
			}
		}
	}
}

func (s *slots) Eval(ctx context.Context, call driver.Call) (any, error) {
	s.look(call)
	return s.Driver.Eval(ctx, call)
}

func (s *slots) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	s.look(calls...)
	return s.Driver.EvalAll(ctx, calls)
}

func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *slots) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, bad := range s.bad {
		t.Errorf("keys in several slots: %s", bad)
	}
}

// startShard starts a cluster of one node, which has all slots: it answers
// CROSSSLOT as a large one does.
func startShard(t *testing.T) server {
	t.Helper()
	s := startServer(t, "--cluster-enabled", "yes")
	all := []string{"CLUSTER", "ADDSLOTS"}
	for slot := range 16384 {
		all = append(all, fmt.Sprint(slot))
	}
	s.MustDo(all...)
	within(t, patience, "the cluster is up", func() bool {
		info, _ := s.MustDo("CLUSTER", "INFO").(string)
		return strings.Contains(info, "cluster_state:ok")
	})
	if _, err := s.Do("DEL", "a", "b"); err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Fatalf("keys of two slots: %v, want CROSSSLOT", err)
	}
	return s
}

// What is refused is refused here, with the field and a reason, by every call.
func TestCase28OtherNamesAreRefused(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startShard(t)
		d := &slots{Driver: lib.new(t, s.URL())}
		c := clientOn(t, d, nil)
		look, err := inspect.New(d, "")
		if err != nil {
			t.Fatal(err)
		}
		for name, why := range map[string]string{
			"":                                  "empty",
			"a\x00b":                            "NUL",
			"a}b":                               "hash tag",
			"a}b{":                              "hash tag",
			"}{":                                "hash tag",
			"}":                                 "hash tag",
			"a{}b":                              "hash tag",
			"{}":                                "hash tag",
			"{}{user}":                          "hash tag",
			"}{user}":                           "",
			"user}{42}":                         "",
			strings.Repeat("x", keys.MaxName+1): "513 bytes",
		} {
			if why == "" {
				release(t, tryLock(t, c.Mutex(name, nil)))
				continue
			}
			sent := d.count()
			for call, err := range refusals(t, c, look, name) {
				var bad *zamok.ConfigError
				if !errors.As(err, &bad) || bad.Field != "name" || !strings.Contains(err.Error(), why) || len(err.Error()) > 400 {
					t.Errorf("%s of %.20q: %v, want one that says %q", call, name, err, why)
				}
			}
			if now := d.count(); now != sent {
				t.Errorf("%.20q: %d calls were sent", name, now-sent)
			}
		}
		d.check(t)
	})
}

// refusals returns what every call says of a bad name.
func refusals(t *testing.T, c *zamok.Client, look *inspect.Inspector, name string) map[string]error {
	m := c.Mutex(name, nil)
	errs := map[string]error{}
	for _, a := range attempts {
		errs[a.name] = a.call(t, m)
	}
	errs["TryDo"] = m.TryDo(t.Context(), mustNotRun(t))
	_, errs["Resume"] = m.Resume(t.Context(), "z1/h/1/r/1")
	_, errs["Show"] = look.Show(t.Context(), name)
	return errs
}

// Whatever a name is made of, it works or is refused, and the server never says
// CROSSSLOT; so does a key of the caller's own.
func TestCase28AnyNameWorksOrIsRefused(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startShard(t)
		d := &slots{Driver: lib.new(t, s.URL())}
		c := clientOn(t, d, nil)
		worked, refused := 0, 0
		for range 2000 {
			name := randomName()
			field, cfg := "name", (*zamok.MutexConfig)(nil)
			if rand.N(2) == 0 {
				field, cfg = "MutexConfig.Key", &zamok.MutexConfig{Key: name}
				name = "own"
			}
			sent := d.count()
			l, err := c.Mutex(name, cfg).TryLock(t.Context())
			if err == nil {
				worked++
				release(t, l)
				continue
			}
			refused++
			var bad *zamok.ConfigError
			if !errors.As(err, &bad) || bad.Field != field || !strings.Contains(err.Error(), "hash tag") || d.count() != sent {
				t.Errorf("%q %+v: %v, %d calls were sent", name, cfg, err, d.count()-sent)
			}
		}
		t.Logf("%d worked, %d were refused", worked, refused)
		if worked < 100 || refused < 100 {
			t.Error("too few of one kind: this shows nothing")
		}
		d.check(t)
	})
}

func randomName() string {
	var b strings.Builder
	for range 1 + rand.N(8) {
		b.WriteString([]string{"{", "}", "{", "}", "a", "lock:", " ", "é", "\n"}[rand.N(9)])
	}
	return b.String()
}
