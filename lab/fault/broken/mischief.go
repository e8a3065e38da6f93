package broken

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/traffic"
)

func (s *stage) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// once waits for a fault to happen once.
func (s *stage) once(ctx context.Context, f *drivertest.Fault) bool {
	select {
	case <-ctx.Done():
		f.Cancel()
		return false
	case <-f.Fired():
		return true
	}
}

// script matches scripts with so many keys, one of which begins so.
func script(keys int, key string) drivertest.Match {
	return func(args []string) bool {
		return len(args) > 2 && strings.HasPrefix(strings.ToLower(args[0]), "eval") && args[2] == fmt.Sprint(keys) && begins(args, key)
	}
}

func begins(args []string, with string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, with) })
}

func cutBefore(m drivertest.Match) func(context.Context, *stage) {
	return func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutBefore(m)) }
}

func cutAfter(m drivertest.Match) func(context.Context, *stage) {
	return func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutAfter(m)) }
}

// lateReply keeps a reply back for a fifth of a TTL.
func lateReply(ctx context.Context, s *stage) {
	f := s.proxy.HoldReply(script(5, "lock:"))
	if s.once(ctx, f) {
		s.pause(ctx, s.ttl/5)
	}
	f.Release()
}

func wipe(ctx context.Context, s *stage) {
	s.pause(ctx, 300*time.Millisecond)
	if ctx.Err() == nil {
		_, _ = s.Do("FLUSHALL")
	}
}

// lateWrite keeps a write back until its lease is over.
func lateWrite(ctx context.Context, s *stage) {
	f := s.proxy.Hold(func(args []string) bool {
		return begins(args, "guarded:") && !strings.EqualFold(args[0], "get")
	})
	if s.once(ctx, f) {
		s.pause(ctx, s.ttl+s.ttl/2)
	}
	f.Release()
}

// deafen ends all subscriptions.
func deafen(ctx context.Context, s *stage) {
	_, _ = s.Do("CLIENT", "KILL", "TYPE", "pubsub")
	s.pause(ctx, 50*time.Millisecond)
}

// ofMajority has nodes of which the second process does not reach the first, which has
// counted furthest.
func ofMajority(flaw Flaw, s *stage, proc string, number int) traffic.Engine {
	addrs := []string{s.Addr(), s.other[0].Addr(), s.other[1].Addr()}
	if proc == "p1" {
		addrs[0] = s.proxy.Addr()
	}
	return NewRedlock(flaw, addrs, proc, number, s.ttl)
}
