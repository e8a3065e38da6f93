package zamok

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
)

func TestCase16TokensAreComparedWhole(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		if seen[id] {
			t.Fatalf("id %q drawn twice", id)
		}
		seen[id] = true
	}
	h, fence := parseValue("z1/worker-10/1/AbC-_9/2z:17959")
	if h.Host != "worker-10" || h.PID != 1 || h.Client != "worker-10/1/AbC-_9" || fence != 17959 || h.Foreign {
		t.Errorf("%+v, %d", h, fence)
	}
}

func TestValuesOfOthersAreForeign(t *testing.T) {
	for _, v := range []string{
		"3f2b9c9e-0c5f", "host:4711", "z1/host/1/abc/1", "z1/host/1/abc/1:", "z1/host/1/abc/1:x", "z1/host/1/abc/1:-5",
		"z1/host/1/abc:5", "z1/host/x/abc/1:5", "z1//1/abc/1:5", "z1/host/1/abc/1/2:5", "z2/host/1/abc/1:5",
	} {
		if h, _ := parseValue(v); !h.Foreign || h.Token != v {
			t.Errorf("%q is taken for %+v", v, h)
		}
	}
}

func TestHostIsReduced(t *testing.T) {
	for in, want := range map[string]string{"web-3.example": "web-3.example", "a:b/c|d e": "a_b_c_d_e", "hôte": "h_te", strings.Repeat("x", 100): strings.Repeat("x", 64)} {
		if got := reduceHost(in); got != want {
			t.Errorf("reduceHost(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFaultTable(t *testing.T) {
	for text, code := range map[string]string{
		"NOPERM User x has no permissions to run the 'evalsha' command":                                                           "NOPERM",
		"ERR The user executing the script can't run this command or subcommand script: 4c15, on @user_script:1.":                 "NOPERM",
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 4c15": "NOPERM",
		"NOAUTH Authentication required.":                                                                          "NOAUTH",
		"WRONGPASS invalid username-password pair or user is disabled.":                                            "WRONGPASS",
		"ERR ACL failure in script: User x has no permissions to run the 'set' command script: on @user_script:6.": "NOPERM",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 4c15, on @user_script:4.":       "WRONGTYPE",
		"ERR Error running script (call to f_1): @user_script:4: WRONGTYPE Operation against a key":                "WRONGTYPE",
		"CROSSSLOT Keys in request don't hash to the same slot":                                                    "CROSSSLOT",
		"ERR unknown command 'GETEX', with args beginning with:":                                                   "ERR",
	} {
		r := refusal("job", fmt.Errorf("driver: %w", &driver.ServerError{Text: text}))
		if r == nil || r.Code != code || r.Hint == "" {
			t.Errorf("%q: %+v, want code %s", text, r, code)
		}
	}
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica. script: 7c5c, on @user_script:1.",
		"OOM command not allowed when used memory > 'maxmemory'. script: 4c15, on @user_script:1.", "CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot", "BUSY Redis is busy running a script.", "MISCONF Redis is configured to save RDB snapshots",
		"NOREPLICAS Not enough good replicas to write.", "MASTERDOWN Link with MASTER is down", "MOVED 3999 127.0.0.1:6381", "something new",
	} {
		if r := refusal("job", &driver.ServerError{Text: text}); r != nil {
			t.Errorf("%q is taken for permanent: %v", text, r)
		}
	}
	if r := refusal("job", errors.New("NOPERM said by a proxy's dialer")); r != nil {
		t.Errorf("an error that no server sent: %v", r)
	}
}

// A machine that slept: the monotonic clock stood still, the wall clock did not.
func TestClockCountsSleep(t *testing.T) {
	var c clock
	c.init()
	before := c.now()
	c.base -= time.Hour                 // as if the system now said that it had slept an hour more
	c.skew.Store(int64(-1 * time.Hour)) // and the wall clock had gone ahead by as much
	if passed := c.now().sub(before); passed < 59*time.Minute {
		t.Errorf("%v passed, want the hour asleep counted", passed)
	}
}

// TestALongPathIsNoMistake: of whoever configured nothing.
func TestALongPathIsNoMistake(t *testing.T) {
	path := os.Args[0]
	defer func() { os.Args[0] = path }()
	os.Args[0] = "/" + strings.Repeat("deep/", 60) + "service"
	cfg, err := (*Config)(nil).withDefaults()
	if err != nil || !strings.HasSuffix(cfg.Command, "/service") || cfg.Name != "service" {
		t.Errorf("%q, %q: %v", cfg.Name, cfg.Command, err)
	}
}

// TestAGuardedScriptMayReturnMore: "return a, b" adds to the reply of the guard, and
// only the first counts.
func TestAGuardedScriptMayReturnMore(t *testing.T) {
	a, err := parseAnswer([]any{"ran", "17", int64(5), int64(0), int64(0), int64(0), "", "one", "two", "three"})
	if err != nil || a.extra != "one" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestTextsOfAClientAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxReason+1)
	for field, cfg := range map[string]*Config{
		"Name": {Name: long}, "Version": {Version: long}, "Command": {Command: long}, "Under": {Under: long},
	} {
		_, err := cfg.withDefaults()
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != "Config."+field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A held lock is a lease, what it is of, and its keys. Each byte more is one for each
// lock that a process holds.
func TestALeaseIsSmall(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"Lease":    {unsafe.Sizeof(Lease{}), 176},
		"spec":     {unsafe.Sizeof(spec{}), 112},
		"keys.Set": {unsafe.Sizeof(keys.Set{}), 64},
	} {
		if strconv.IntSize == 64 && size[0] > size[1] {
			t.Errorf("a %s has %d bytes, want at most %d", name, size[0], size[1])
		}
	}
}

// Whoever notices first that a lease is over marks it, and ends its context a moment later.
// Who asks the context in between is not told that it holds.
func TestContextOfALeaseThatIsMarkedAsOver(t *testing.T) {
	c, err := New(willing{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Mutex("job", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	c.keeper.mu.Lock()
	_ = l.lapse()
	c.keeper.mu.Unlock()
	if err := l.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("Err of its context: %v", err)
	}
	if !errors.Is(context.Cause(ctx), ErrLost) {
		t.Errorf("cause of a context below: %v", context.Cause(ctx))
	}
}
