package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
)

// examine does it in virtual time.
func examine(t *testing.T, f *fake, c *Config) []Finding {
	t.Helper()
	var found []Finding
	synctest.Test(t, func(t *testing.T) {
		var err error
		if found, err = Examine(t.Context(), f, c); err != nil {
			t.Fatal(err)
		}
	})
	complete(t, found)
	return found
}

func TestExamineGood(t *testing.T) {
	f := good()
	f.keys = map[string]int64{"lock:a": 1000, "zamok:queue:{lock:a}": 900000, "lorry:b": -1}
	f.fences = map[string]int64{"zamok:fence:{000001}": 1}
	found := examine(t, f, nil)
	if Worst(found) != OK {
		t.Error(list(found))
	}
	for check, says := range map[string]string{
		"scripts": "all rights", "latency": "0s", "clock": "0s ahead", "pubsub": "a message took", "keys": "2 of zamok should have a TTL, and 2 have",
	} {
		if len(find(found, check, OK, says)) != 1 {
			t.Errorf("want one of %s that says %q:%s", check, says, list(found))
		}
	}
}

// What a server refuses is found, whatever its version says it with.
func TestExamineRefusals(t *testing.T) {
	for _, c := range []struct {
		refuse   map[string]string
		check    string
		severity Severity
		says     string
	}{
		{map[string]string{"INFO": "NOPERM this user has no permissions to run the 'info' command"}, "info", Warning, "the right +info"},
		{map[string]string{"CONFIG": "NOPERM User app has no permissions to run the 'config|get' command"}, "config", Note, "the right +config|get"},
		{map[string]string{"CONFIG": "ERR unknown command 'CONFIG'"}, "config", Note, "the server's host"},
		{map[string]string{"SCAN": "NOPERM User app has no permissions to run the 'scan' command"}, "keys", Note, "the right +scan"},
		{map[string]string{"TIME": "NOPERM no"}, "latency", Note, "not measured: NOPERM no"},
		{map[string]string{"script ZADD": "ERR ACL failure in script: User app has no permissions to run the 'zadd' command", "script ZREM": "@user_script: 1: The user executing the script can't run this command or subcommand"}, "rights", Critical, "lacks +zadd +zrem"},
		{map[string]string{"script XADD": "ERR The user executing the script can't run this command or subcommand"}, "rights", Warning, "lacks +xadd"},
		{map[string]string{"script PUBLISH": "ERR ACL failure in script: No permissions to access a channel"}, "rights", Warning, "lacks &app:*"},
		{map[string]string{"SUBSCRIBE": "NOPERM this user has no permissions to access one of the channels used as arguments"}, "rights", Warning, "lacks &app:*"},
		{map[string]string{"SUBSCRIBE": "NOPERM User app has no permissions to run the 'subscribe' command"}, "rights", Warning, "lacks +subscribe"},
		{map[string]string{"SUBSCRIBE": "ERR max number of clients reached"}, "pubsub", Warning, "max number of clients"},
		{map[string]string{"EVALSHA": "NOPERM No permissions to access a key"}, "rights", Critical, "lacks ~app:*"},
		{map[string]string{"EVALSHA": "NOPERM this user has no permissions to run the 'evalsha' command"}, "rights", Critical, "lacks +evalsha"},
		{map[string]string{"EVAL": "NOPERM this user has no permissions to run the 'eval' command or its subcommand"}, "rights", Critical, "after a restart"},
		{map[string]string{"SCRIPT": "NOPERM User app has no permissions to run the 'script|load' command"}, "rights", Critical, "lacks +script|load"},
		{map[string]string{"EVALSHA": "MOVED 866 127.0.0.1:7001"}, "scripts", Critical, "a node of a cluster"},
		{map[string]string{"EVALSHA": "CLUSTERDOWN Hash slot not served"}, "scripts", Critical, "CLUSTER INFO"},
		{map[string]string{"EVALSHA": "BUSY Redis is busy running a script."}, "scripts", Critical, "SCRIPT KILL"},
		{map[string]string{"script GETEX": "@user_script: 1: Unknown Redis command called from Lua script", "script XADD": "ERR Invalid stream ID"}, "scripts", Critical, "does not know GETEX"},
		{map[string]string{"script SET": "OOM command not allowed when used memory > 'maxmemory'."}, "writes", Critical, "renewal and release still work"},
		{map[string]string{"script DEL": "READONLY You can't write against a read only replica."}, "writes", Critical, "the primary"},
		{map[string]string{"script DEL": "@user_script: 1: -MISCONF Redis is configured to save"}, "writes", Critical, "disk"},
		{map[string]string{"script DEL": "NOREPLICAS Not enough good replicas to write."}, "writes", Critical, "replicas"},
	} {
		f := good()
		f.refuse = c.refuse
		found := examine(t, f, &Config{Prefix: "app:"})
		if len(find(found, c.check, c.severity, c.says)) != 1 {
			t.Errorf("%q: want one finding %s of %s that says %q:%s", c.refuse, c.severity, c.check, c.says, list(found))
		}
		if ok := find(found, "scripts", OK, ""); len(ok) > 0 && (c.check == "rights" || c.check == "scripts" || c.check == "writes") {
			t.Errorf("%q: in order all the same: %s", c.refuse, list(ok))
		}
		for i, other := range found[1:] {
			if other.Severity.rank() > found[i].Severity.rank() {
				t.Errorf("%q: not the worst first: %s", c.refuse, list(found))
			}
		}
	}
}

// A Sentinel is asked for nothing that it does not have.
func TestExamineSentinel(t *testing.T) {
	f := good()
	f.info = map[string]string{"redis_mode": "sentinel"}
	f.refuse = map[string]string{"CONFIG": "ERR unknown command 'CONFIG'"}
	if found := examine(t, f, nil); len(find(found, "role", Critical, "redis+sentinel://")) != 1 || len(found) != 1 {
		t.Error(list(found))
	}
}

func TestExamineMessages(t *testing.T) {
	for how, says := range map[string]string{"mute": "did not arrive within 5s", "unseen": "does not see that this client listens"} {
		f := good()
		f.deafness = how
		if found := examine(t, f, nil); len(find(found, "pubsub", Warning, says)) != 1 {
			t.Errorf("%s: %s", how, list(found))
		}
	}
}

// once returns d for the nth answer and 0 for the others.
func once(n int, d time.Duration) func() time.Duration {
	return func() time.Duration {
		if n--; n == 0 {
			return d
		}
		return 0
	}
}

func TestExamineLatency(t *testing.T) {
	const aTime = 25 // about that answer is one of TIME: 14 come before them
	for _, c := range []struct {
		delay    func() time.Duration
		ttl      time.Duration
		severity Severity
		says     string
	}{
		{func() time.Duration { return 3 * time.Millisecond }, 0, OK, "3ms (of 20, 3ms to 3ms)"},
		{func() time.Duration { return 150 * time.Millisecond }, 0, Warning, "about 7 times a second"},
		{once(aTime, 1200*time.Millisecond), 0, Warning, "passed over"},
		{once(aTime, 300*time.Millisecond), 0, OK, "0s to 300ms"},
		{once(aTime, 300*time.Millisecond), time.Second, Warning, "0s to 300ms"},
		{once(aTime, 800*time.Millisecond), time.Second, Critical, "A lease of 1s is lost"},
	} {
		f := good()
		f.delay = c.delay
		if found := examine(t, f, &Config{TTL: c.ttl}); len(find(found, "latency", c.severity, c.says)) != 1 {
			t.Errorf("want %s, %q: %s", c.severity, c.says, list(found))
		}
	}
}

func TestExamineClock(t *testing.T) {
	began := time.Time{}
	runs := func(rate float64) func() time.Duration {
		return func() time.Duration {
			if began.IsZero() {
				began = time.Now()
			}
			return time.Duration(float64(time.Since(began)) * rate)
		}
	}
	stepped := func(d time.Duration) func() time.Duration {
		n := 0
		return func() time.Duration {
			if n++; n > 10 {
				return d
			}
			return 0
		}
	}
	for name, c := range map[string]struct {
		ahead    func() time.Duration
		severity Severity
		says     string
	}{
		"ahead":   {func() time.Duration { return time.Minute }, Note, "1m0s ahead of ours"},
		"behind":  {func() time.Duration { return -time.Minute }, Note, "1m0s behind ours"},
		"near":    {func() time.Duration { return 900 * time.Millisecond }, OK, "900ms ahead"},
		"fast":    {runs(0.02), Warning, "ran 1.02s while 1s passed"},
		"slow":    {runs(-0.02), Warning, "ran 980ms while 1s passed"},
		"a bit":   {runs(0.005), OK, "ahead"},
		"forward": {stepped(time.Hour), Warning, "while 1s passed"},
		"back":    {stepped(-time.Hour), Warning, "while 1s passed"},
	} {
		began = time.Time{}
		f := good()
		f.ahead = c.ahead
		if found := examine(t, f, nil); len(find(found, "clock", c.severity, c.says)) != 1 {
			t.Errorf("%s: want %s, %q: %s", name, c.severity, c.says, list(found))
		}
	}
}

func TestExamineKeys(t *testing.T) {
	f := good()
	f.keys = map[string]int64{
		"app:lock:a": -1, "app:lock:b": 1000, "app:lock:gone": -2, "app:zamok:queue:{app:lock:a}": -1, "lock:other": -1, "app:lorry": -1,
	}
	for i := range 5 {
		f.keys[fmt.Sprintf("app:lock:x%d", i)] = -1
	}
	f.fences = map[string]int64{"app:zamok:fence:{000001}": time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC).UnixMicro()} // virtual time begins in 2000
	found := examine(t, f, &Config{Prefix: "app:", Keys: -1})
	for check, says := range map[string]string{"keys": `locks without a TTL: "a", "x0", "x1" and 3 more`, "clock": "s ahead of what the server's clock shows"} {
		if len(find(found, check, Warning, says)) != 1 {
			t.Errorf("want a warning of %s that says %q:%s", check, says, list(found))
		}
	}
	if len(find(found, "keys", Note, `"app:zamok:queue:{app:lock:a}"`)) != 1 {
		t.Error(list(found))
	}
	found = examine(t, f, &Config{Prefix: "app:", Keys: 1500})
	if len(find(found, "keys", OK, "not all keys were looked at")) != 1 {
		t.Errorf("after three of its pages: %s", list(found))
	}
	f.delay = func() time.Duration { return time.Second }
	if found = examine(t, f, &Config{Prefix: "app:", TTL: time.Hour}); len(find(found, "keys", OK, "not all keys were looked at")) != 1 {
		t.Errorf("after 2 s: %s", list(found))
	}
}

// A server that cannot be asked is an error, whenever it shows; so is the end of
// ctx, which is not waited out.
func TestExamineErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := good()
		f.dead = errDown
		if found, err := Examine(t.Context(), f, nil); !errors.Is(err, errDown) || len(found) != 0 {
			t.Errorf("down: %v, %v", found, err)
		}
		f = good()
		f.refuse = map[string]string{"*": "NOAUTH Authentication required."}
		var said *driver.ServerError
		if _, err := Examine(t.Context(), f, nil); !errors.As(err, &said) || said.Code() != "NOAUTH" {
			t.Errorf("without a password: %v", err)
		}
		f = good()
		n := 0
		f.ahead = func() time.Duration {
			if n++; n == 5 {
				f.dead = errDown
			}
			return 0
		}
		if found, err := Examine(t.Context(), f, nil); !errors.Is(err, errDown) || len(find(found, "role", OK, "primary")) != 1 {
			t.Errorf("down in between: %v, %v", found, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := Examine(ctx, good(), &Config{Measure: time.Hour}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Minute {
			t.Errorf("ctx: %v after %v", err, time.Since(began))
		}
	})
}

func TestMistakes(t *testing.T) {
	for field, c := range map[string]*Config{
		"Config.Prefix": {Prefix: "a\x00"}, "Config.TTL": {TTL: time.Millisecond}, "Config.Measure": {Measure: -1},
	} {
		var ce *zamok.ConfigError
		if _, err := Examine(t.Context(), good(), c); !errors.As(err, &ce) || ce.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Examine(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "driver") {
		t.Errorf("nil: %v", err)
	}
	if Worst(nil) != OK || Worst([]Finding{{Severity: "else"}, {Severity: Critical}}) != "else" {
		t.Error("a severity that is none passes")
	}
}
