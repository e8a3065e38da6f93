package itest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
)

// The holder is stopped with a guarded write on its way, which reaches the
// server only after the rival's: there is nothing that the holder's own clock
// could refuse.
func TestCase10StoppedHolder(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		for _, rivalHolds := range []bool{false, true} {
			t.Run(fmt.Sprintf("rivalHolds=%v", rivalHolds), func(t *testing.T) { stoppedHolder(t, p, k, rivalHolds) })
		}
	})
}

func stoppedHolder(t *testing.T, p place, k leaseKind, rivalHolds bool) {
	name := fmt.Sprint("job-", rivalHolds)
	key, data := k.keyOf(name), dataOf(k.keyOf(name))
	s, way := p.at(key), p.ways(t)
	old := way.start(t, 0, "holder", kindEnv+"="+k.name, nameEnv+"="+name)
	var token string
	var fence int64
	if _, err := fmt.Sscan(old.expect("held"), &token, &fence); err != nil {
		t.Fatal(err)
	}
	late := way.to(key).Hold(func(args []string) bool { return isCall(args) && slices.Contains(args, data) })
	old.say("write")
	receive(t, late.Fired(), "write on its way")
	old.signal(syscall.SIGSTOP)

	rival := lock(t, k.rival(p.client(t, 1, nil), name, 0))
	if rival.Fence() <= fence {
		t.Errorf("the rival's fence %d, the old one %d", rival.Fence(), fence)
	}
	if _, err := rival.Run(t.Context(), writeScript, []string{data}, "new"); err != nil {
		t.Fatal(err)
	}
	if !rivalHolds {
		release(t, rival)
	}
	before := k.found(t, s, name)

	late.Release()
	old.signal(syscall.SIGCONT)
	if line := receive(t, old.lines, "line"); line != "writing" {
		t.Fatalf("the child says %q", line)
	}
	// Its limit and the refusal came in the same moment, so it may not know.
	if how := old.expect("write"); how != "lost" && how != "unknown" {
		t.Errorf("the late write: %s", how)
	}
	old.say("err")
	if how := old.expect("err"); how != "lost canceled" {
		t.Errorf("after it: Err and Context().Err() are %s", how)
	}
	old.say("write")
	if old.expectLine("writing"); old.expect("write") != "lost" {
		t.Error("a second write was not refused")
	}
	old.say("release")
	if how := old.expect("release"); how != "lost" {
		t.Errorf("the late release: %s", how)
	}
	old.say("close")
	if how := old.expect("close"); how != "nil" {
		t.Errorf("Close: %s", how)
	}
	if v := s.get(t, data); v != "new" {
		t.Errorf("the old holder's write was applied: %q", v)
	}
	if after := k.found(t, s, name); after != before {
		t.Errorf("the old holder made %q of %q", after, before)
	}
	if rivalHolds {
		release(t, rival)
	}
}

func (p *process) expectLine(want string) {
	p.t.Helper()
	if line := receive(p.t, p.lines, want); line != want {
		p.t.Fatalf("the child says %q, want %q", line, want)
	}
}

func TestCase19AnotherProcessReleases(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		a := start(t, lib, s.URL(), "leaver")
		var token string
		var fence int64
		if _, err := fmt.Sscan(a.expect("held"), &token, &fence); err != nil {
			t.Fatal(err)
		}
		receive(t, a.exited, "end of the process")
		if a.err != nil {
			t.Fatal(a.err)
		}
		c := lib.client(t, s.URL(), nil)
		before := s.get(t, "lock:job")
		for _, wrong := range []string{token + "0", token[:len(token)-1], strings.Replace(token, "/", "/x", 1)} {
			_, err := c.Mutex("job", nil).Resume(t.Context(), wrong)
			if kind(err) != "lost" && !errors.As(err, new(*zamok.ConfigError)) {
				t.Errorf("a wrong token: %v", err)
			}
		}
		if after := s.get(t, "lock:job"); after != before {
			t.Errorf("a wrong token made %q of %q", after, before)
		}
		l, err := c.Mutex("job", nil).Resume(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		if l.Fence() <= fence {
			t.Errorf("fence %d after %d", l.Fence(), fence)
		}
		release(t, l)
		if s.has(t, "lock:job") {
			t.Error("not freed")
		}
	})
}

// A program that computes SHA-1 does not run with this setting, which is read
// when it starts.
func TestCase24OnlyFIPS(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		before := s.Commands()
		p := start(t, lib, s.URL(), "round", "GODEBUG=fips140=only")
		if how := p.expect("ok"); how != "fips140=only" {
			t.Errorf("it ran with %q", how)
		}
		receive(t, p.exited, "end of the process")
		if p.err != nil {
			t.Error(p.err)
		}
		did := s.Commands().Since(before)
		if did["eval"] != 0 || did["evalsha"] < 100 {
			t.Errorf("%d times EVAL, %d times EVALSHA", did["eval"], did["evalsha"])
		}
	})
}

// The one who listens to everything must not make a dead waiter look alive. In a
// cluster nobody can listen to everything that is for one shard.
func TestCase33MonitorAndAKilledHead(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s := p.at(k.keyOf("job"))
		watcher := redis.NewClient(&redis.Options{Addr: s.Addr()})
		t.Cleanup(func() { _ = watcher.Close() })
		all := watcher.PSubscribe(t.Context(), "*")
		if _, err := all.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = all.Close() })
		messages := all.Channel()

		first := tryLock(t, k.rival(p.client(t, 0, nil), "job", 0))
		head := p.start(t, 1, "holder", kindEnv+"="+k.name)
		within(t, patience, "the head waits", func() bool { return k.waiting(t, s, "job") == 1 })
		next := goLock(t.Context(), k.rival(p.client(t, 2, nil), "job", 1))
		within(t, patience, "the next waits", func() bool { return k.waiting(t, s, "job") == 2 })
		member := s.MustDo("ZRANGE", k.queue("job"), "0", "0").([]any)[0].(string)
		inbox, numsub := member[strings.LastIndex(member, "|")+1:], "NUMSUB"
		if driver.Sharded(inbox) {
			numsub = "SHARDNUMSUB"
		}
		head.kill()
		within(t, patience, "the server notices the end", func() bool {
			n, _ := s.MustDo("PUBSUB", numsub, inbox).([]any)
			return len(n) == 2 && n[1] == int64(0)
		})
		start := time.Now()
		release(t, first)
		g := receive(t, next, "lock")
		if g.err != nil {
			t.Fatal(g.err)
		}
		if took := g.at.Sub(start); slow(start, g.at, 100*time.Millisecond) {
			t.Errorf("the next one has it after %v", took)
		}
		release(t, g.lease)
		if driver.Sharded(inbox) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		select {
		case m := <-messages:
			if m.Channel == inbox && strings.HasPrefix(m.Payload, "grant ") {
				t.Errorf("a grant was sent to the dead: %q", m.Payload)
			}
		case <-ctx.Done():
			t.Error("the monitor saw nothing, so this case shows nothing")
		}
	})
}
