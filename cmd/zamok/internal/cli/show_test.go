package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// ran is what came of one run of the program within the test.
type ran struct {
	code   int
	out    string
	stderr string
}

// runOn runs the program within the test on a server.
func runOn(t *testing.T, server *drivertest.Server, args ...string) ran {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	text := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	in, out, errs := file("in"), file("out"), file("err")
	a := newApp(in, out, errs)
	a.defaultURL = server.URL()
	t.Setenv("ZAMOK_REDIS", "")
	t.Setenv("REDIS_URL", "")
	code := a.run(context.Background(), args)
	return ran{code, text(out), text(errs)}
}

// clientOf is a client of the library on the server.
func clientOf(t *testing.T, server *drivertest.Server, c *zamok.Config) *zamok.Client {
	t.Helper()
	r := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 16})
	t.Cleanup(func() { r.Close() })
	client, err := zamok.New(zamokgoredis.New(r), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// until waits for what nothing announces.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting until %s", what)
		}
	}
}

func TestDeadlockLines(t *testing.T) {
	member := func(name string, sure bool) inspect.DeadlockMember {
		return inspect.DeadlockMember{
			Name: name, Holder: zamok.Holder{Host: "h", PID: 1, Token: "z1/h/1/x/1"}, Service: "svc",
			Waits: inspect.Waiter{Waited: 3 * time.Second}, Sure: sure,
		}
	}
	got := deadlockLines(inspect.Deadlock{Members: []inspect.DeadlockMember{member("a", true), member("b\x1b", false)}})
	want := []string{
		`a: held by svc on h pid 1, which has waited 3s for "b\x1b"`,
		`"b\x1b": held by svc on h pid 1, which has waited 3s for a, perhaps not under this lock`,
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAgoRoundsFirst(t *testing.T) {
	for d, want := range map[time.Duration]string{
		999600 * time.Microsecond: "1s", 9960 * time.Millisecond: "10s", 59600 * time.Millisecond: "1m00s",
		time.Hour - time.Millisecond: "1h00m", 48*time.Hour - time.Second: "2d00h", 0: "0s",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

// What is known of a lock is shown, and nothing that is not.
func TestPrintLock(t *testing.T) {
	for what, c := range map[string]struct {
		change    func(*inspect.Lock)
		want, not string
	}{
		"nothing known": {func(*inspect.Lock) {}, "holder    h pid 1\nsince     1m00s ago\nends      in 10s, unless it is renewed\nwaiting   0\n", "renewals"},
		"silent":        {func(l *inspect.Lock) { l.Holders[0].Silent, l.Holders[0].Up = true, time.Hour }, "process   silent: it is gone, or cut off from the server\n", "up "},
		"up":            {func(l *inspect.Lock) { l.Holders[0].Up = time.Minute }, "process   up 1m00s\n", "silent"}, // it had it before it said so
		"late":          {func(l *inspect.Lock) { l.Holders[0].TTL, l.Holders[0].Late = time.Minute, 3*time.Second }, "renewals  late: the next one is overdue by 3s\n", "on time"},
		"on time":       {func(l *inspect.Lock) { l.Holders[0].TTL = time.Minute }, "renewals  on time, to 1m00s\n", "late"},
		"detached":      {func(l *inspect.Lock) { l.Holders[0].TTL, l.Holders[0].Detached = time.Minute, true }, "ends      in 10s\nrenewals  none: it was detached, for another process to go on with\n", "unless"},
		"broken": {
			func(l *inspect.Lock) {
				l.Holders[0].TTL, l.Holders[0].Broken = time.Minute, &inspect.BrokenBy{By: "ann@ops", Why: "stuck\x1b"}
			},
			"ends      in 10s\nbroken    ann@ops asked the holder to stop: \"stuck\\x1b\"\n", "renewals",
		},
		"foreign, no TTL": {
			func(l *inspect.Lock) {
				*l = heldByForeign("a")
				l.NoTTL = true
			},
			"holder    a foreign program (value \"x\")\nends      never by itself: the key has no TTL\nwaiting   0\n", "since",
		},
		"more waiters": {
			func(l *inspect.Lock) {
				l.Waiting = 3
				l.Waiters = []inspect.Waiter{{Place: 1, Holder: l.First().Holder, Service: "w", Waited: time.Second, TTL: time.Minute, Alive: true, Polls: true}}
			},
			"PLACE  WAITER        WAITING  TTL    STATE\n1      w on h pid 1  1s       1m00s  polls\nand 2 more\n", "gone",
		},
		"own key": {func(l *inspect.Lock) { l.Key = "old:a" }, "lock      a\nkey       old:a\n", "lock:a"},
	} {
		l := heldBy("a", "h", time.Minute, 0)
		c.change(&l)
		var b strings.Builder
		printLock(&b, width, l)
		if got := b.String(); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q is missing, or %q is there:\n%s", what, c.want, c.not, got)
		}
	}
}
