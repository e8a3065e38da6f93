// Package zamoktest helps programs that use zamok to test what they do when a
// lock is held, lost, or the server is not there, without a server and, within
// testing/synctest, without waiting.
//
//	func TestReportStopsOnLoss(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			server := zamoktest.New(t, nil)
//			job := report.New(server.Client())
//			…
//			server.Lose("report") // the job's context ends within a third of the TTL
//		})
//	}
//
// Everything that can be broken on the in-memory server (Hang, Down, Wipe,
// Intercept, Latency, Step …) is a method of Server too; see package memory.
package zamoktest

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Server is an in-memory server for one test.
type Server struct {
	*memory.Server
	t   testing.TB
	cfg zamok.Config
}

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
// closed at the end of the test.
func (s *Server) Client() *zamok.Client {
	s.t.Helper()
	c, err := zamok.New(s.Server, &s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.Unhang()
		s.Up()
		_ = c.Close()
	})
	return c
}

// Key returns the key of a lock that has no MutexConfig.Key.
func (s *Server) Key(name string) string { return s.cfg.Prefix + "lock:" + name }

// Hold has a rival, another process, take the lock, and returns what releases
// it, which may be called more than once. The test fails when the lock is held.
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
// TTL. The test fails when nobody holds it.
func (s *Server) Lose(name string) {
	s.t.Helper()
	if s.Type(s.Key(name)) == "none" {
		s.t.Fatalf("zamoktest: Lose(%q): nobody holds it", name)
	}
	s.Del(s.Key(name))
}

// Define gives the Go twin of a guarded script, since there is no Lua in
// memory. See memory.Twin.
func (s *Server) Define(script *zamok.Script, twin memory.Twin) {
	s.Server.Define(script.Name(), twin)
}
