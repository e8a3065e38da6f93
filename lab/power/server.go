// Package power starts servers that lose what a machine loses with its power: what is
// written to files, and not yet to the disk.
package power

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/preload"
)

//go:embed testdata/sync.c
var source []byte

// Server is a server with an append-only file.
type Server struct {
	*drivertest.Server
	t     testing.TB
	dir   string
	notes string // what it had written to the disk
}

// StartServer starts one. args are as those of drivertest.StartServer; it needs what
// preload.StartServer needs.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, notes: filepath.Join(t.TempDir(), "synced")}
	s.Server = preload.StartServer(t, source, fmt.Sprintf("ZAMOK_SYNCED='%s'", s.notes), append([]string{"--appendonly", "yes"}, args...)...)
	s.dir = s.MustDo("CONFIG", "GET", "dir").([]any)[1].(string)
	return s
}

// Synced is how much of each of its files the disk is sure to have, by its path.
func (s *Server) Synced() map[string]int64 {
	s.t.Helper()
	text, err := os.ReadFile(s.notes)
	if err != nil {
		s.t.Fatal(err)
	}
	synced := make(map[string]int64)
	for line := range strings.Lines(string(text)) {
		length, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil {
			s.t.Fatalf("%q: %v", line, err)
		}
		synced[path] = n
	}
	return synced
}

// Busy has the disk be busy, and not: it writes nothing that it is asked for meanwhile.
func (s *Server) Busy(busy bool) {
	s.t.Helper()
	var err error
	if name := s.notes + ".busy"; busy {
		err = os.WriteFile(name, nil, 0o600)
	} else {
		err = os.Remove(name)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Fail cuts the power: the server is gone, and of its append-only file what the disk was
// not sure to have. It returns how many bytes that was. Restart is the next start.
func (s *Server) Fail() (lost int64) {
	s.t.Helper()
	s.Kill()
	synced := s.Synced()
	for _, pattern := range []string{"appendonlydir/*.incr.aof", "appendonly.aof"} { // the latter before Redis 7
		files, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range files {
			info, err := os.Stat(name)
			if err != nil {
				s.t.Fatal(err)
			}
			lost += info.Size() - synced[name]
			if err := os.Truncate(name, synced[name]); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return lost
}
