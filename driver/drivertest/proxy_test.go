package drivertest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// pipeline sends commands at once and returns what comes back, up to the end of
// the connection or as many replies as commands.
func pipeline(t *testing.T, c *rawConn, cmds ...[]string) []string {
	t.Helper()
	var b []byte
	for _, cmd := range cmds {
		b = appendRequest(b, cmd)
	}
	c.SetDeadline(time.Now().Add(ioLimit))
	if _, err := c.Write(b); err != nil {
		return []string{err.Error()}
	}
	var got []string
	for range cmds {
		v, err := parseFrame(c.r)
		if err == io.EOF {
			return append(got, "EOF")
		}
		if err != nil {
			return append(got, err.Error())
		}
		got = append(got, fmt.Sprint(v))
	}
	return got
}

func through(t *testing.T) (*Server, *Proxy, *rawConn) {
	t.Helper()
	s := StartServer(t)
	p := StartProxy(t, s.Addr())
	return s, p, dialThrough(t, p)
}

func dialThrough(t *testing.T, p *Proxy) *rawConn {
	t.Helper()
	c, err := dialRaw(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var incrs = [][]string{{"INCR", "a"}, {"INCR", "b"}, {"INCR", "c"}}

// A cut in the middle of a pipeline is exact: what was before it is answered,
// the command itself ran or did not, and what follows did not run.
func TestProxyCuts(t *testing.T) {
	for _, tt := range []struct {
		name string
		arm  func(*Proxy, Match) *Fault
		b    string
	}{
		{"before", (*Proxy).CutBefore, "<nil>"},
		{"after", (*Proxy).CutAfter, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p, c := through(t)
			f := tt.arm(p, Containing("incr", "b"))
			want(t, pipeline(t, c, incrs...), "1", "EOF")
			<-f.Fired()
			got := fmt.Sprint(s.MustDo("MGET", "a", "b", "c"))
			if got != "[1 "+tt.b+" <nil>]" {
				t.Errorf("the server has a, b, c = %s", got)
			}
			want(t, pipeline(t, dialThrough(t, p), incrs[0]), "2") // once only
		})
	}
}

// A reply of which half has come is none, and the command ran.
func TestProxyCutInside(t *testing.T) {
	s, p, c := through(t)
	f := p.CutInside(Containing("echo", "0123456789"))
	want(t, pipeline(t, c, incrs[0], []string{"ECHO", "0123456789"}), "1", "unexpected EOF")
	<-f.Fired()
	if got := s.Commands()["echo"]; got != 1 {
		t.Errorf("the command ran %d times", got)
	}
}

// A held command arrives late, even when its client has gone.
func TestProxyHold(t *testing.T) {
	s, p, c := through(t)
	f := p.Hold(Containing("incr", "b"))
	done := make(chan []string, 1)
	go func() { done <- pipeline(t, c, incrs[:2]...) }()
	<-f.Fired()
	c.Close()
	<-done
	if got := s.MustDo("EXISTS", "b"); got != int64(0) {
		t.Fatal("the held command ran")
	}
	f.Release()
	eventually(t, "the late command to run", func() bool { return s.MustDo("EXISTS", "b") == int64(1) })
	eventually(t, "the connection to end", func() bool { return p.Conns() == 0 })
}

func TestProxyHoldReply(t *testing.T) {
	s, p, c := through(t)
	f := p.HoldReply(Containing("incr", "b"))
	done := make(chan []string, 1)
	go func() { done <- pipeline(t, c, incrs...) }()
	<-f.Fired()
	if got := fmt.Sprint(s.MustDo("MGET", "a", "b", "c")); got != "[1 1 <nil>]" {
		t.Errorf("the server has a, b, c = %s", got)
	}
	f.Release()
	want(t, <-done, "1", "1", "1")
}

func TestProxyFaultCancel(t *testing.T) {
	_, p, c := through(t)
	f := p.CutBefore(Command())
	if !f.Cancel() || f.Cancel() {
		t.Error("Cancel must succeed once")
	}
	want(t, pipeline(t, c, incrs...), "1", "1", "1")
}

func TestProxyBlackhole(t *testing.T) {
	s, p, c := through(t)
	want(t, pipeline(t, c, incrs[0]), "1")
	p.Blackhole()
	done := make(chan []string, 2)
	go func() { done <- pipeline(t, c, incrs[0]) }()
	go func() { done <- pipeline(t, dialThrough(t, p), incrs[1]) }()
	eventually(t, "the second connection", func() bool { return p.Accepted() == 2 })
	if got := fmt.Sprint(s.MustDo("MGET", "a", "b")); got != "[1 <nil>]" {
		t.Errorf("something passed: %s", got)
	}
	p.Resume()
	<-done
	<-done
	if got := fmt.Sprint(s.MustDo("MGET", "a", "b")); got != "[2 1]" {
		t.Errorf("after Resume the server has a, b = %s", got)
	}
}

// A delay is a longer way, not a slower server: a pipeline pays it once.
func TestProxyDelay(t *testing.T) {
	_, p, c := through(t)
	p.Delay(100 * time.Millisecond)
	start := time.Now()
	var many [][]string
	for range 50 {
		many = append(many, incrs[0])
	}
	pipeline(t, c, many...)
	if d := time.Since(start); d < 100*time.Millisecond || d > 2*time.Second {
		t.Errorf("50 pipelined commands took %v", d)
	}
}

// A narrow way is slow by what passes, in both directions.
func TestProxyNarrow(t *testing.T) {
	_, p, c := through(t)
	p.Narrow(10_000)
	start := time.Now()
	pipeline(t, c, []string{"ECHO", strings.Repeat("x", 1000)})
	if d := time.Since(start); d < 200*time.Millisecond {
		t.Errorf("2,000 bytes took %v", d)
	}
	p.Narrow(0)
	want(t, pipeline(t, c, incrs[0]), "1")
}

func TestProxyRefuse(t *testing.T) {
	_, p, c := through(t)
	want(t, pipeline(t, c, incrs[0]), "1")
	p.Refuse()
	if _, err := dialRaw(p.Addr()); err == nil {
		t.Error("connected")
	}
	want(t, pipeline(t, c, incrs[0]), "2") // what existed lives on
	p.Accept()
	want(t, pipeline(t, dialThrough(t, p), incrs[0]), "3")
	p.KillAll()
	want(t, pipeline(t, c, incrs[0]), "EOF")
	eventually(t, "all connections to end", func() bool { return p.Conns() == 0 })
}

// Pushes come between replies and answer nothing, in both protocols; losing one
// leaves the rest alone.
func TestProxyPushes(t *testing.T) {
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			s, p, c := through(t)
			pipeline(t, c, []string{"HELLO", proto})
			want(t, pipeline(t, c, []string{"SUBSCRIBE", "x"}), "[subscribe x 1]")
			drop := p.DropPush(Containing("message", "two"))
			hold := p.HoldPush(Containing("message", "three"))
			for _, m := range []string{"one", "two", "three"} {
				s.MustDo("PUBLISH", "x", m)
			}
			<-drop.Fired()
			<-hold.Fired()
			hold.Release()
			cut := p.CutAfter(Command("ping"))
			// Two messages stand before the cut; the PING runs and is not answered.
			want(t, pipeline(t, c, []string{"PING"}), "[message x one]")
			v, err := parseFrame(c.r)
			if fmt.Sprint(v) != "[message x three]" {
				t.Errorf("got %v, %v", v, err)
			}
			<-cut.Fired()
			if v, err := parseFrame(c.r); err != io.EOF {
				t.Errorf("after the cut: %v, %v", v, err)
			}
		})
	}
}
