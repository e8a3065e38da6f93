// Package zamoktest helps programs that use zamok to test what they do when a
// lock is held, lost, or the server is not there, without a server and, within
// testing/synctest, without waiting.
//
//	func TestReportStopsWhenTheLockIsLost(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			server := zamoktest.New(t, nil)
//			job := report.New(server.Client())
//			done := make(chan error, 1)
//			go func() { done <- job.Make(t.Context()) }()
//			server.AwaitHeld("report")
//			server.Lose("report") // the job's context ends within a third of the TTL
//			if err := <-done; !errors.Is(err, zamok.ErrLost) {
//				t.Errorf("got %v, want ErrLost", err)
//			}
//		})
//	}
//
// A Server is a driver.Driver too, for code that makes its own client. Everything
// that can be broken on the in-memory server (Hang, Down, Wipe, Intercept,
// Latency, Step …) is a method of it: see package memory. The files
// example_*_test.go of this package test a small job under each fault, one
// scenario a file; docs/testing.md says which fault teaches what.
package zamoktest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
)

// Server is an in-memory server for one test. Its methods may be called from many
// goroutines at once, but those that may fail the test (Client, Hold, Lose,
// BreakLock, AwaitHeld, AwaitWaiters) are for the goroutine of the test.
type Server struct {
	*memory.Server
	t   testing.TB
	cfg zamok.Config
}

// Tx is the server as the Go twin of a script sees it: see Server.Define.
type Tx = memory.Tx

// New returns an empty server. cfg is the configuration of its clients; nil is
// the default. Without a Logger they log to the test's log.
func New(t testing.TB, cfg *zamok.Config) *Server {
	s := &Server{Server: memory.New(), t: t}
	if cfg != nil {
		s.cfg = *cfg
	}
	if s.cfg.Logger == nil {
		s.cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return s
}

// Client returns a new client, which is to the others as another process. It is
// closed at the end of the test, when all that was broken has been mended: Close
// would wait for a server that does not answer.
func (s *Server) Client() *zamok.Client {
	s.t.Helper()
	c, err := zamok.New(s.Server, &s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.mend()
		_ = c.Close()
	})
	return c
}

// mend ends every fault that a test can set and that Close would meet.
func (s *Server) mend() {
	s.Intercept(nil)
	s.Unhang()
	s.Up()
}

// Key returns the key of a lock that has no MutexConfig.Key.
func (s *Server) Key(name string) string { return s.cfg.Prefix + "lock:" + name }

// Hold has a rival, another process, take the lock, and returns what releases
// it, which may be called more than once. The rival renews its lease until then.
// The test fails when the lock is held or somebody waits for it.
func (s *Server) Hold(name string) (release func()) {
	s.t.Helper()
	lease, err := s.Client().Mutex(name, nil).TryLock(context.Background())
	if err != nil {
		s.t.Fatalf("zamoktest: Hold(%q): %v", name, err)
	}
	return func() {
		if err := lease.Release(context.Background()); err != nil && !errors.Is(err, zamok.ErrReleased) {
			s.t.Errorf("zamoktest: release of the rival's lock %q: %v", name, err)
		}
	}
}

// Lose takes the lock away from whoever holds it, as a deletion by hand does:
// the holder learns of it when it next asks, by itself within a third of its
// TTL. Nobody is told that the lock is free; who waits for it finds out within
// 2 s. The test fails when nobody holds it.
func (s *Server) Lose(name string) {
	s.t.Helper()
	if !s.Held(name) {
		s.t.Fatalf("zamoktest: Lose(%q): nobody holds it", name)
	}
	s.Del(s.Key(name))
}

// BreakLock asks the holder to end its lease, as an operator does (package
// inspect): its context ends when it next renews, within a third of its TTL, and
// its *zamok.LostError has this reason and LostBroken. It has the lock until it
// releases it, which Do does when its function has returned. A second asking
// changes nothing. The test fails when no client of zamok holds the lock.
func (s *Server) BreakLock(name, why string) {
	s.t.Helper()
	value, _ := s.Get(s.Key(name))
	left, _ := s.TTL(s.Key(name))
	switch {
	case !strings.HasPrefix(value, "z1/"):
		s.t.Fatalf("zamoktest: BreakLock(%q): nobody holds it who could be asked", name)
	case !strings.Contains(value, "!"):
		s.Set(s.Key(name), value+"!zamoktest!"+why, left) // as docs/protocol.md has it
	}
}

// Define gives the Go twin of a guarded script, since there is no Lua in
// memory. See memory.Twin.
func (s *Server) Define(script *zamok.Script, twin memory.Twin) {
	s.Server.Define(script.Name(), twin)
}

// LoseReply lets the guarded script run and every reply of it get lost, so that
// Lease.Run returns zamok.ErrUnknown. It is an Intercept, and Intercept(nil) ends
// it.
func (s *Server) LoseReply(script *zamok.Script) {
	s.Intercept(func(call driver.Call) memory.Fault {
		name := call.Script.Name()
		return memory.Fault{DropReply: name == "guard:"+script.Name() || name == "permit:"+script.Name()}
	})
}
