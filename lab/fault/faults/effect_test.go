package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// effects are what those notice of each fault who use the servers. A fault without an
// effect would be counted, and try nothing.
var effects = map[string]func(*stage){
	"kill-worker":       signalled(syscall.SIGKILL),
	"pause-worker":      signalled(syscall.SIGSTOP, syscall.SIGCONT),
	"pause-worker-long": signalled(syscall.SIGSTOP, syscall.SIGCONT),

	"cut-before":   cut(0),
	"cut-after":    cut(1),
	"cut-inside":   cut(1),
	"hold-request": held(0),
	"hold-reply":   held(1),
	"drop-message": dropped,
	"hold-message": late,
	"reset":        disconnected,
	"delay":        slowed,
	"jitter":       slowed,
	"narrow":       narrowed,
	"blackhole":    silenced,
	"refuse":       refused,

	"pause-server":      silenced,
	"pause-server-long": silenced,
	"kill-server":       restarted(""),
	"stop-server":       restarted(""),
	"old-data":          restarted("before"),
	"flush-scripts":     forgot,
	"kill-listeners":    unsubscribed,
	"kill-clients":      disconnected,
	"pause-clients":     paused,
	"flush-all":         wiped,
	"memory-full":       full,
	"evict":             evicted,
	"few-votes":         fewVoted,
	"clock-forward":     stepped(1),
	"clock-back":        stepped(-1),
}

// elsewhere are those whose effect has a test of its own.
var elsewhere = []string{"partition"} // deploy's TestSpaceIsCutOff

// needs says which kind of deployment a fault is done to, if not a single server.
var needs = map[string]string{"clock-forward": "clock", "clock-back": "clock", "few-votes": "quorum3"}

func TestFaultsHaveAnEffect(t *testing.T) {
	for _, f := range All {
		if slices.Contains(elsewhere, f.Name) || slices.ContainsFunc(ofTopology, func(o *Fault) bool { return o.Name == f.Name }) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			kind := needs[f.Name]
			if kind == "" {
				kind = "single"
			}
			s, n := scene(t, kind)
			g := &stage{T: t, Scene: s, fault: f, signals: n}
			for _, ways := range s.Ways {
				g.users = append(g.users, user(t, ways[0].Addr()))
			}
			effects[f.Name](g)
		})
	}
}

// stage is where the effect of one fault is looked for.
type stage struct {
	*testing.T
	*Scene
	fault   *Fault
	signals *nobody
	users   []*redis.Conn // by worker, of the first server
}

// user is a connection that tries nothing twice.
func user(t *testing.T, addr string) *redis.Conn {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	conn := c.Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return conn
}

// begin does the fault.
func (g *stage) begin(lasts time.Duration) Done {
	return g.fault.Do(g.Scene, rand.New(rand.NewPCG(1, 2)), lasts)
}

// hit is the way that the fault is done to, and who uses it.
func (g *stage) hit(d Done) (*drivertest.Proxy, *redis.Conn) {
	var worker, server int
	_, _ = fmt.Sscanf(d.Target, "way %d-%d", &worker, &server) // a server is felt by all
	return g.Ways[worker][server], g.users[worker]
}

// end ends the fault, which must have happened.
func (g *stage) end(d Done) {
	g.Helper()
	if d.Undo != nil && !d.Undo() {
		g.Error("it says that nothing happened")
	}
}

func (g *stage) value(key string) string {
	v, _ := g.Servers[0].MustDo("GET", key).(string)
	return v
}

func (g *stage) want(key, value string) {
	g.Helper()
	if got := g.value(key); got != value {
		g.Errorf("%s is %q, want %q", key, got, value)
	}
}

// asked counts how often it was executed.
func (g *stage) ask(c *redis.Conn) error {
	return c.Eval(g.Context(), "return redis.call('INCR', KEYS[1])", []string{"asked"}).Err()
}

// times is what the server says of ask.
func times(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func signalled(want ...syscall.Signal) func(*stage) {
	return func(g *stage) {
		g.end(g.begin(0))
		if !slices.Equal(g.signals.got, want) {
			g.Errorf("signals %v, want %v", g.signals.got, want)
		}
	}
}

// cut ends the connection, and the server has executed so many.
func cut(executed int) func(*stage) {
	return func(g *stage) {
		d := g.begin(0)
		_, c := g.hit(d)
		if err := g.ask(c); err == nil {
			g.Error("it was answered")
		}
		g.want("asked", times(executed))
		g.end(d)
	}
}

// noEvent is how long what should not come is waited for.
const noEvent = 50 * time.Millisecond

// unanswered has what is asked answered only after the fault, but for what came too late
// for it. It checks with during before the end.
func (g *stage) unanswered(ask func(c *redis.Conn) error, during func()) {
	g.Helper()
	for wait := noEvent; ; wait *= 2 {
		d := g.begin(0)
		_, c := g.hit(d)
		answer := make(chan error, 1)
		go func() { answer <- ask(c) }()
		select {
		case <-time.After(wait): // no event
		case err := <-answer:
			g.Fatalf("answered at once: %v", err)
		}
		during()
		happened := d.Undo()
		if err := <-answer; err != nil {
			g.Errorf("afterwards: %v", err)
		}
		if happened {
			return
		}
		if wait > time.Minute {
			g.Fatal("it never happens")
		}
		g.Servers[0].MustDo("FLUSHALL")
	}
}

func held(executed int) func(*stage) {
	return func(g *stage) {
		g.unanswered(g.ask, func() {
			for limit := time.Now().Add(time.Minute); g.value("asked") != times(executed); <-time.After(time.Millisecond) {
				if time.Now().After(limit) {
					g.Fatalf("executed %q times, want %d", g.value("asked"), executed)
				}
			}
		})
		g.want("asked", "1")
	}
}

func silenced(g *stage) {
	g.unanswered(func(c *redis.Conn) error { return c.Ping(g.Context()).Err() }, func() {})
}

// listen subscribes by each way.
func (g *stage) listen() (all []*redis.PubSub) {
	for _, ways := range g.Ways {
		c := redis.NewClient(&redis.Options{Addr: ways[0].Addr()})
		sub := c.Subscribe(g.Context(), "news")
		g.Cleanup(func() { sub.Close(); c.Close() })
		if _, err := sub.Receive(g.Context()); err != nil {
			g.Fatal(err)
		}
		all = append(all, sub)
	}
	return all
}

func (g *stage) heard(sub *redis.PubSub, want string) {
	g.Helper()
	m, err := sub.ReceiveMessage(g.Context())
	if err != nil || m.Payload != want {
		g.Errorf("heard %v, %v, want %q", m, err, want)
	}
}

func (g *stage) listener(all []*redis.PubSub, d Done) *redis.PubSub {
	var worker, server int
	_, _ = fmt.Sscanf(d.Target, "way %d-%d", &worker, &server)
	return all[worker]
}

func dropped(g *stage) {
	all := g.listen()
	d := g.begin(0)
	for _, text := range []string{"one", "two"} {
		g.Servers[0].MustDo("PUBLISH", "news", text)
	}
	g.heard(g.listener(all, d), "two")
	g.end(d)
}

func late(g *stage) {
	all := g.listen()
	for wait := noEvent; ; wait *= 2 {
		d := g.begin(0)
		news := g.listener(all, d).Channel()
		g.Servers[0].MustDo("PUBLISH", "news", "one")
		early := false
		select {
		case <-news:
			early = true
		case <-time.After(wait): // no event
		}
		if d.Undo() {
			if early {
				g.Error("it came at once")
				return
			}
			if m := <-news; m.Payload != "one" {
				g.Errorf("heard %v", m)
			}
			return
		}
		if wait > time.Minute {
			g.Fatal("it never happens")
		}
		all = g.listen()
	}
}

func unsubscribed(g *stage) {
	all := g.listen()
	d := g.begin(0)
	for _, sub := range all {
		if m, err := sub.Receive(g.Context()); err == nil {
			g.Errorf("it goes on with %v", m)
		}
	}
	g.end(d)
}

func disconnected(g *stage) {
	d := g.begin(0)
	if _, c := g.hit(d); c.Ping(g.Context()).Err() == nil {
		g.Error("the connection is there")
	}
	g.end(d)
}
