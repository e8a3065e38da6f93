package faults

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// slowed has some command take longer than all would without a fault: what is drawn for
// each is at least some 100 ns, of up to a tenth of the TTL.
func slowed(g *stage) {
	d := g.begin(0)
	_, c := g.hit(d)
	least, err := time.ParseDuration(d.Detail)
	if err != nil { // jitter: another one every 10 ms
		least = time.Millisecond
	}
	for limit := time.Now().Add(time.Minute); ; {
		start := time.Now()
		if err := c.Ping(g.Context()).Err(); err != nil {
			g.Fatal(err)
		}
		if time.Since(start) >= least {
			break
		}
		if time.Now().After(limit) {
			g.Fatal("nothing is slower")
		}
	}
	g.end(d)
}

func narrowed(g *stage) {
	d := g.begin(0)
	_, c := g.hit(d)
	var rate int
	_, _ = fmt.Sscan(d.Detail, &rate)
	start := time.Now()
	if err := c.Echo(g.Context(), strings.Repeat("x", rate/4)).Err(); err != nil {
		g.Fatal(err)
	}
	if took := time.Since(start); took < time.Second/2 { // it goes there and comes back
		g.Errorf("it took %v", took)
	}
	g.end(d)
}

func refused(g *stage) {
	d := g.begin(0)
	way, c := g.hit(d)
	if conn, err := net.Dial("tcp", way.Addr()); err == nil {
		conn.Close()
		g.Error("it accepts")
	}
	if c.Ping(g.Context()).Err() == nil {
		g.Error("the old connection is there")
	}
	g.end(d)
}

// restarted leaves of what was written before and while it lasts no more than what.
func restarted(kept string) func(*stage) {
	return func(g *stage) {
		g.Servers[0].MustDo("SET", "x", "before")
		run := runID(g.Servers[0])
		d := g.begin(0)
		_, _ = g.Servers[0].Do("SET", "x", "while") // it may be gone
		g.end(d)
		g.want("x", kept)
		if runID(g.Servers[0]) == run {
			g.Error("it did not restart")
		}
	}
}

func runID(s *drivertest.Server) string {
	text, _ := s.MustDo("INFO", "server").(string)
	_, rest, _ := strings.Cut(text, "run_id:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

func forgot(g *stage) {
	id := g.Servers[0].MustDo("SCRIPT", "LOAD", "return 1").(string)
	g.end(g.begin(0))
	if v := g.Servers[0].MustDo("SCRIPT", "EXISTS", id).([]any)[0]; v != int64(0) {
		g.Error("it knows the script")
	}
}

// paused has what was asked answered when the time is over, which the server counts.
func paused(g *stage) {
	const lasts = 500 * time.Millisecond
	start := time.Now()
	d := g.begin(lasts)
	if err := g.users[0].Set(g.Context(), "x", "1", 0).Err(); err != nil {
		g.Fatal(err)
	}
	if took := time.Since(start); took < lasts {
		g.Errorf("answered after %v", took)
	}
	g.end(d)
}

func wiped(g *stage) {
	g.Servers[0].MustDo("SET", "x", "1")
	g.end(g.begin(0))
	g.want("x", "")
}

func full(g *stage) {
	d := g.begin(0)
	if err := g.users[0].Set(g.Context(), "x", "1", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		g.Errorf("%v, want OOM", err)
	}
	g.end(d)
}

func evicted(g *stage) {
	const keys = 1000
	for i := range keys {
		g.Servers[0].MustDo("SET", strconv.Itoa(i), strings.Repeat("x", 1000))
	}
	d := g.begin(0)
	g.Servers[0].MustDo("SET", "one", "more")
	if n := g.Servers[0].MustDo("DBSIZE"); n.(int64) > keys/2 {
		g.Errorf("%d keys are left", n)
	}
	g.end(d)
}

// fewVoted cuts each worker off from a member of three, each from another one as far as
// there are, and has one start anew.
func fewVoted(g *stage) {
	var runs []string
	for _, s := range g.Servers {
		runs = append(runs, runID(s))
	}
	d := g.begin(time.Millisecond)
	anew := 0
	for i, s := range g.Servers {
		if runID(s) != runs[i] {
			anew++
		}
	}
	if anew != 1 {
		g.Errorf("%d members started anew", anew)
	}
	// A way that is cut accepts, and is silent: its greeting comes when that is over.
	answers := make(chan [2]int, len(g.Ways)*len(g.Servers))
	for worker, ways := range g.Ways {
		for server, way := range ways {
			go func() {
				greeted(way.Addr())
				answers <- [2]int{worker, server}
			}()
		}
	}
	open := make(map[[2]int]bool)
	for range len(g.Ways) * (len(g.Servers) - 1) {
		open[<-answers] = true
	}
	select {
	case one := <-answers:
		g.Errorf("the way %v is open too", one)
	case <-time.After(noEvent): // no event
	}
	for server := range g.Servers {
		if !open[[2]int{0, server}] && !open[[2]int{1, server}] {
			g.Errorf("both are cut off from %d", server)
		}
	}
	g.end(d)
	for range g.Ways {
		<-answers
	}
}

// greeted returns when a server has answered.
func greeted(addr string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("PING\r\n"))
	_, _ = conn.Read(make([]byte, 1))
}

// stepped sets the server's clock, by what the fault says.
func stepped(way time.Duration) func(*stage) {
	return func(g *stage) {
		start := time.Now()
		before := serverTime(g)
		d := g.begin(0)
		by, err := time.ParseDuration(d.Detail)
		if err != nil || (by < 0) != (way < 0) || by == 0 {
			g.Errorf("%q, %v", d.Detail, err)
		}
		moved := serverTime(g) - before
		if slack := time.Since(start); moved < by-time.Microsecond || moved > by+slack { // it counts µs
			g.Errorf("it went %v on, want %v", moved, by)
		}
		g.end(d)
	}
}

func serverTime(g *stage) time.Duration {
	v := g.Servers[0].MustDo("TIME").([]any)
	s, _ := strconv.Atoi(v[0].(string))
	us, _ := strconv.Atoi(v[1].(string))
	return time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond
}
