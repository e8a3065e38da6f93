package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// peer is a kind of other side.
type peer struct {
	name string
	form string // of the key that the library makes of a name
	// shown and own are the forms of a name and of the key that both zamok and the
	// library, each by itself, have for it; empty where the library cannot.
	shown, own string
	command    func(t *testing.T, s server) *exec.Cmd
}

var peers = []peer{
	{"redsync", "%s", "%s", "lock:%s", inGo("redsync")},
	{"redislock", "%s", "%s", "lock:%s", inGo("redislock")},
	{"rueidislock", "rueidislock:0:%s", "0:%s", "lock:0:%s", inGo("rueidislock")},
	{"go-redis", "locks/%s", "%s", "lock:%s", inGo("go-redis")},
	{"redis-cli", "locks/%s", "%s", "lock:%s", redisCLI},
	{"python", "%s", "%s", "lock:%s", python},
	{"redis-semaphore", "mutex:%s", "", "", node("redis-semaphore")},
	{"redlock4", "locks:%s", "%s", "lock:%s", node("redlock4")},
	{"redlock5", "locks:%s", "%s", "lock:%s", node("redlock5")},
}

// start starts a process of that kind, and returns when it can take a lock.
func (p peer) start(t *testing.T, s server, free string) *process {
	t.Helper()
	other := run(t, p.command(t, s))
	other.must("try", free, "60000")
	other.releases(free)
	return other
}

func inGo(role string) func(*testing.T, server) *exec.Cmd {
	return func(t *testing.T, s server) *exec.Cmd {
		t.Helper()
		return again(t, s, role)
	}
}

func redisCLI(t *testing.T, s server) *exec.Cmd {
	t.Helper()
	for _, name := range []string{"redis-cli", "valkey-cli"} {
		if cli, err := exec.LookPath(name); err == nil {
			return exec.Command("bash", "testdata/peer.sh", cli, s.Addr())
		}
	}
	t.Fatal("no redis-cli and no valkey-cli in the PATH: `apt-get install redis-tools`")
	return nil
}

func python(t *testing.T, s server) *exec.Cmd {
	t.Helper()
	name := findPython()
	if name == "" {
		t.Fatal("no python3 here has the package redis: `apt-get install python3-redis`")
	}
	return exec.Command(name, "testdata/peer.py", s.Addr())
}

// findPython returns one that has the library: the distribution's package is for
// the distribution's Python, which need not be the first in the PATH.
var findPython = sync.OnceValue(func() string {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import redis.lock").Run() == nil {
			return name
		}
	}
	return ""
})

func node(library string) func(*testing.T, server) *exec.Cmd {
	return func(t *testing.T, s server) *exec.Cmd {
		t.Helper()
		modules, err := nodeModules()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("node", "testdata/peer.js", library, s.Addr())
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
		return cmd
	}
}

// nodeModules returns the folder of the libraries for node and fetches them if
// no test has done so before: once for each state of the lock file.
var nodeModules = sync.OnceValues(func() (string, error) {
	lock, err := os.ReadFile("testdata/package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "zamok-interop")
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, "node_modules"), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := fetch(temp); err != nil {
		return "", err
	}
	// Whoever was faster has fetched the same.
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return filepath.Join(dir, "node_modules"), nil
})

// fetch has npm put into dir what the lock file names, by its checksums. No
// package may run anything.
func fetch(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm cannot fetch the libraries for node: %w\n%s\n`scripts/setup` installs node and npm; npm must reach its registry the first time", err, out)
	}
	return nil
}
