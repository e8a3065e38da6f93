package acl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/inspect/doctor"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

const password = "not-a-secret"

// granted are the rules of a user that has the rights of zamok.
func granted() []string {
	return append([]string{"on", ">" + password}, doctor.Rights("")...)
}

type dial struct {
	name string
	open func(t *testing.T, addr string) driver.Driver
}

var dials = []dial{
	{"go-redis", func(t *testing.T, addr string) driver.Driver {
		c := redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: password})
		t.Cleanup(func() { _ = c.Close() })
		return zamokgoredis.New(c)
	}},
	{"rueidis", func(t *testing.T, addr string) driver.Driver {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, Username: "app", Password: password, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return zamokrueidis.New(c)
	}},
}

// note is a script of a user's own; its commands are among the rights anyway.
var note = zamok.NewScript("note", `return redis.call('SET', KEYS[1], FENCE, 'PX', 1000)`)

// life takes a lock through all that can happen to it and returns every error,
// with what was tried.
func life(t *testing.T, server *drivertest.Server, d driver.Driver) []error {
	t.Helper()
	ctx := context.Background()
	var errs []error
	try := func(what string, err error) bool {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
		return err == nil
	}
	places := [3]chan struct{}{1: make(chan struct{}, 1), 2: make(chan struct{}, 1)}
	up := make(chan struct{}, 8)
	var told atomic.Int64 // waiters that a message told of their lock
	trace := &zamok.Trace{
		Waiting: func(i zamok.WaitingInfo) {
			select {
			case places[i.Place] <- struct{}{}:
			default:
			}
		},
		Subscription: func(err error) {
			if err == nil {
				up <- struct{}{}
			}
		},
		Acquired: func(i zamok.AcquiredInfo) {
			if i.HandedOver {
				told.Add(1)
			}
		},
	}
	client, err := zamok.New(d, &zamok.Config{Trace: trace, TTL: time.Second, GiveUp: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() // again, when a step below stops the test

	lease, err := client.Mutex("life", nil).Lock(ctx)
	if try("lock", err) {
		try("check", lease.Check(ctx))
		try("extend", lease.Extend(ctx, time.Minute))
		_, err := lease.Run(ctx, note, []string{"zamok:note:{life}"})
		try("run", err)
		token, err := lease.Detach()
		try("detach", err)
		if lease, err = client.Mutex("life", nil).Resume(ctx, token); try("resume", err) {
			try("release", lease.Release(ctx))
		}
	}
	if lease, err = client.Mutex("rest", &zamok.MutexConfig{MinHold: time.Minute}).TryLock(ctx); try("try", err) {
		try("release into a rest", lease.Release(ctx))
		_, err = client.Mutex("rest", nil).TryLock(ctx)
		if !errors.Is(err, zamok.ErrHeld) {
			try("try of a resting lock", err)
		}
	}
	if lease, err = client.Mutex("contended", nil).Lock(ctx); try("lock", err) {
		contended(ctx, server, client, lease, places, up, try)
		if told.Load() == 0 {
			try("hand over", errors.New("the waiter was not told"))
		}
	}
	// Not those above, which may not have been released: without +del, say.
	several, err := client.Multi([]string{"some", "rest of it"}, nil).Lock(ctx)
	if try("take several", err) {
		try("release several", several.Release(ctx))
	}
	if lease, err = client.Semaphore("life", 1, nil).TryAcquire(ctx); try("take a permit", err) {
		try("give it back", lease.Release(ctx))
	}
	look, err := inspect.New(d, "")
	if err != nil {
		t.Fatal(err)
	}
	shared(ctx, client, look, try)
	_, err = look.Show(ctx, "life")
	try("show", err)
	operated(ctx, client, look, try)
	try("close", client.Close())
	return errs
}

// shared takes a lock as a reader and has a writer wait for it in vain, and has an
// operator break one of two permits.
func shared(ctx context.Context, client *zamok.Client, look *inspect.Inspector, try func(string, error) bool) {
	l := client.RWMutex("read", nil)
	lease, err := l.RLock(ctx)
	if !try("read", err) {
		return
	}
	if _, err = l.TryLock(ctx); !errors.Is(err, zamok.ErrHeld) {
		try("write beside a reader", fmt.Errorf("answered %w", err))
	}
	try("extend a reader's lease", lease.Extend(ctx, time.Minute))
	_, err = look.Show(ctx, "read")
	try("show readers", err)
	try("end reading", lease.Release(ctx))
	s := client.Semaphore("broken", 2, nil)
	other, err := s.Acquire(ctx)
	if !try("take a permit beside another", err) {
		return
	}
	if lease, err = s.Acquire(ctx); !try("take a permit to break", err) {
		return
	}
	shown, err := look.ShowSemaphore(ctx, "broken")
	try("show permits", err)
	_, err = look.Break(ctx, shown, &inspect.BreakConfig{Token: lease.Token(), Why: "a trial"})
	try("break a permit", err)
	try("check the other permit", other.Check(ctx))
	try("give the other permit back", other.Release(ctx))
}

// operated has an operator list the clients, break a lease and read the events.
func operated(ctx context.Context, client *zamok.Client, look *inspect.Inspector, try func(string, error) bool) {
	_, err := look.Look(ctx)
	try("list", err)
	lease, err := client.Mutex("broken", nil).Lock(ctx)
	if !try("lock to break", err) {
		return
	}
	shown, err := look.Show(ctx, "broken")
	if !try("show what to break", err) {
		return
	}
	b, err := look.Break(ctx, shown, &inspect.BreakConfig{Why: "a trial"})
	try("break", err)
	try("write the break down", b.AuditErr)
	if err := lease.Check(ctx); !errors.Is(err, zamok.ErrLost) {
		try("be told of the break", fmt.Errorf("told %v", err))
	}
	events, err := look.Events(ctx, "", 1)
	try("events", err)
	if len(events) > 0 {
		_, err = look.Events(ctx, events[0].ID, 1)
		try("later events", err)
	}
}

// contended has two wait, of whom the first loses its subscription and asks again,
// and the second gives up. The server forgets its scripts meanwhile.
func contended(ctx context.Context, server *drivertest.Server, client *zamok.Client, lease *zamok.Lease, places [3]chan struct{}, up chan struct{}, try func(string, error) bool) {
	m := client.Mutex("contended", nil)
	waiter := func(ctx context.Context, place int) chan error {
		done := make(chan error, 1)
		go func() {
			next, err := m.Lock(ctx)
			if err == nil {
				err = next.Release(context.Background())
			}
			done <- err
		}()
		select {
		case <-places[place]:
		case err := <-done:
			done <- err
		}
		return done
	}
	first := waiter(ctx, 1)
	if len(up) > 0 {
		<-up
		server.MustDo("CLIENT", "KILL", "TYPE", "pubsub")
		<-up
		select {
		case <-places[1]: // from before
		default:
		}
		select { // it asks again for its place
		case <-places[1]:
		case err := <-first:
			first <- err
		}
	}
	server.MustDo("SCRIPT", "FLUSH")
	short, cancel := context.WithCancel(ctx)
	second := waiter(short, 2)
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		try("wait and give up", err)
	}
	for end := time.Now().Add(2 * time.Second); server.MustDo("ZCARD", "zamok:queue:{lock:contended}").(int64) > 1; {
		if time.Now().After(end) {
			try("give up", errors.New("left behind: its place in the queue"))
			break
		}
	}
	try("release to a waiter", lease.Release(ctx))
	try("wait", <-first)
}

func start(t *testing.T, rules []string) *drivertest.Server {
	t.Helper()
	server := drivertest.StartServer(t)
	server.MustDo(append([]string{"ACL", "SETUSER", "app"}, rules...)...)
	return server
}

func TestDocumentedRightsSuffice(t *testing.T) {
	server := start(t, granted())
	for _, d := range dials {
		t.Run(d.name, func(t *testing.T) {
			server.MustDo("FLUSHALL")
			for _, err := range life(t, server, d.open(t, server.Addr())) {
				t.Error(err)
			}
		})
	}
	for _, entry := range server.MustDo("ACL", "LOG").([]any) {
		e := fmt.Sprint(entry)
		// Clients ask what kind of server it is and tell it their names, and do
		// not mind a refusal.
		if !strings.Contains(e, "client|") && !strings.Contains(e, "cluster|") {
			t.Errorf("the server refused something: %s", e)
		}
	}
}

// ofTheLibrary are the rights to connect, which client libraries use, and so is
// what these do without them.
var ofTheLibrary = []string{"+hello", "+ping", "+unsubscribe", "+select"}

// TestOneRightLess takes every right away in turn.
func TestOneRightLess(t *testing.T) {
	rules := granted()
	server := start(t, rules)
	for i, right := range rules {
		if !strings.ContainsRune("+~&", rune(right[0])) || slices.Contains(ofTheLibrary, right) {
			continue
		}
		t.Run(right, func(t *testing.T) {
			less := slices.Delete(slices.Clone(rules), i, i+1)
			server.MustDo("FLUSHALL")
			server.MustDo("SCRIPT", "FLUSH")
			server.MustDo(append([]string{"ACL", "SETUSER", "app", "reset"}, less...)...)
			errs := life(t, server, dials[0].open(t, server.Addr()))
			if len(errs) == 0 {
				t.Fatal("everything works without it, so the document lists too much")
			}
			// Some rights are missed by work that is done behind the caller's
			// back or has another way; then it shows by what is left undone.
			denied := slices.ContainsFunc(errs, func(err error) bool {
				var refused *zamok.ServerError
				var raw *driver.ServerError
				return errors.As(err, &refused) && refused.Denied() || errors.As(err, &raw) ||
					strings.Contains(err.Error(), "not told") || strings.Contains(err.Error(), "left behind")
			})
			if !denied {
				t.Errorf("no error is one of rights: %v", errs)
			}
			t.Log(errs[0])
		})
	}
}

// TestDoctorNamesTheRight takes every right away in turn, and sees that the doctor
// tells that it is missing, and no other.
func TestDoctorNamesTheRight(t *testing.T) {
	rules := granted()
	server := start(t, rules)
	lacking := func(t *testing.T, d driver.Driver) string {
		t.Helper()
		found, err := doctor.Examine(t.Context(), d, &doctor.Config{Measure: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var lacks []string
		for _, f := range found {
			if rest, ok := strings.CutPrefix(f.Found, "this user lacks "); ok && f.Check == "rights" {
				lacks = append(lacks, rest)
			}
		}
		return strings.Join(lacks, ", ")
	}
	for _, d := range dials {
		if got := lacking(t, d.open(t, server.Addr())); got != "" {
			t.Errorf("%s, with all rights: %q is missing", d.name, got)
		}
	}
	for i, right := range rules {
		if !strings.ContainsRune("+~&", rune(right[0])) || slices.Contains(ofTheLibrary, right) {
			continue
		}
		t.Run(right, func(t *testing.T) {
			less := slices.Delete(slices.Clone(rules), i, i+1)
			server.MustDo(append([]string{"ACL", "SETUSER", "app", "reset"}, less...)...)
			for _, d := range dials {
				if got := lacking(t, d.open(t, server.Addr())); got != right {
					t.Errorf("%s: %q is missing", d.name, got)
				}
			}
		})
	}
}

// The doctor finds the same through either driver, also what servers tell as maps.
func TestDoctorThroughBothDrivers(t *testing.T) {
	server := start(t, append(granted(), doctor.RightsToLook()...))
	server.MustDo("CONFIG", "SET", "timeout", "5")
	var first []string
	for _, d := range dials {
		found, err := doctor.Examine(t.Context(), d.open(t, server.Addr()), &doctor.Config{Measure: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var checks []string
		for _, f := range found {
			if f.Check != "latency" && f.Check != "pauses" { // of this moment, and not of the server
				checks = append(checks, f.Check+" "+string(f.Severity))
			}
		}
		if !slices.Contains(checks, "connections note") || !slices.Contains(checks, "pubsub ok") || !slices.Contains(checks, "buffers ok") {
			t.Errorf("%s: found %q", d.name, checks)
		}
		if first == nil {
			first = checks
		} else if !slices.Equal(first, checks) {
			t.Errorf("%s: found %q, want %q", d.name, checks, first)
		}
	}
}
