package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// fake is a server that says what a test wants. Left alone it is one on which
// there is nothing to find.
type fake struct {
	info     map[string]string
	settings map[string]string
	refuse   map[string]string // by command in capitals, "*" for all: the server's words
	keys     map[string]int64  // with their TTL in ms, -1 without
	fences   map[string]int64
	ahead    func() time.Duration // of the server's clock
	delay    func() time.Duration // of each answer
	dead     error                // for every call
	deafness string               // "mute": no message arrives; "unseen": NUMSUB says 0

	mu     sync.Mutex
	handle func(driver.Event)
}

func good() *fake {
	f := &fake{info: map[string]string{}, settings: map[string]string{}, refuse: map[string]string{}}
	parseInfo(f.info, goodInfo)
	f.settings = map[string]string{
		"save": "3600 1", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "stop-writes-on-bgsave-error": "yes",
		"min-replicas-to-write": "1", "min-replicas-max-lag": "10", "replica-read-only": "yes", "timeout": "0", "tcp-keepalive": "300",
		"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", "lua-time-limit": "5000",
	}
	return f
}

// goodInfo is what Redis 7.0.15 says, as far as the doctor reads it.
const goodInfo = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Clients\r\nconnected_clients:3\r\nmaxclients:10000\r\n" +
	"evicted_clients:0\r\nused_memory:1000000\r\nused_memory_rss:9000000\r\ntotal_system_memory:8000000000\r\nmaxmemory:100000000\r\n" +
	"maxmemory_policy:noeviction\r\nmem_not_counted_for_evict:0\r\nloading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\n" +
	"aof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\naof_delayed_fsync:0\r\nrejected_connections:0\r\nevicted_keys:0\r\n" +
	"latest_fork_usec:300\r\nrole:master\r\nconnected_slaves:1\r\nmin_slaves_good_slaves:1\r\n" +
	"slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1\r\ncluster_enabled:0\r\n" +
	"cmdstat_get:calls=6,usec=27,usec_per_call=4.50,rejected_calls=0,failed_calls=0\r\n" +
	"latency_percentiles_usec_get:p50=4.015,p99=5.023,p99.9=5.023\r\n"

func (f *fake) answer(ctx context.Context, command string) error {
	if f.delay != nil {
		time.Sleep(f.delay()) // virtual time passes: no event
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.dead != nil {
		return f.dead
	}
	for _, name := range []string{command, "*"} {
		if said := f.refuse[name]; said != "" {
			return &driver.ServerError{Text: said}
		}
	}
	return nil
}

func (f *fake) Do(ctx context.Context, _ time.Duration, args ...string) (any, error) {
	if err := f.answer(ctx, args[0]); err != nil {
		return nil, err
	}
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "TIME":
		now := time.Now()
		if f.ahead != nil {
			now = now.Add(f.ahead())
		}
		return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}, nil
	case "INFO":
		var b strings.Builder
		for name, value := range f.info {
			b.WriteString(name + ":" + value + "\r\n")
		}
		return b.String(), nil
	case "CONFIG GET":
		if v, ok := f.settings[args[2]]; ok {
			return []any{args[2], v}, nil
		}
		return []any{}, nil
	case "ACL WHOAMI":
		return "app", nil
	case "ACL DRYRUN":
		return "User app has no permissions to run the 'flushall' command", nil
	case "PUBSUB NUMSUB":
		if f.deafness == "unseen" {
			return []any{args[2], int64(0)}, nil
		}
		return []any{args[2], int64(1)}, nil
	}
	switch args[0] {
	case "PUBLISH":
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.handle != nil && f.deafness != "mute" {
			f.handle(driver.Event{Kind: driver.Message, Payload: args[2]})
		}
		return int64(1), nil
	case "SCAN":
		return f.scan(args[1])
	}
	return "OK", nil
}

// scan gives one key a page.
func (f *fake) scan(cursor string) (any, error) {
	all := []string{}
	for key := range f.keys {
		all = append(all, key)
	}
	for key := range f.fences {
		all = append(all, key)
	}
	slices.Sort(all)
	at, _ := strconv.Atoi(cursor)
	if at >= len(all) {
		return []any{"0", []any{}}, nil
	}
	return []any{strconv.Itoa((at + 1) % len(all)), []any{all[at]}}, nil
}

func (f *fake) Eval(ctx context.Context, call driver.Call) (any, error) {
	if err := f.answer(ctx, "EVALSHA"); err != nil {
		return nil, err
	}
	switch call.Script.Name() {
	case "doctor":
		var out []any
		for args := call.Args; len(args) > 0; {
			n, _ := strconv.Atoi(args[0])
			out = append(out, f.refuse["script "+args[1]])
			args = args[1+n:]
		}
		return out, nil
	case "doctor-pttl":
		return f.keys[call.Keys[0]], nil
	case "doctor-fence":
		return []any{strconv.FormatInt(f.fences[call.Keys[0]], 10), strconv.FormatInt(time.Now().UnixMicro(), 10)}, nil
	}
	return []any{}, nil
}

func (f *fake) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	var out []driver.Result
	for _, call := range calls {
		reply, err := f.Eval(ctx, call)
		out = append(out, driver.Result{Reply: reply, Err: err})
	}
	return out
}

func (f *fake) EvalWait(ctx context.Context, call driver.Call, _ int, _ time.Duration) (any, int64, error) {
	reply, err := f.Eval(ctx, call)
	return reply, 0, err
}

func (f *fake) Clustered() bool { return false }

func (f *fake) Subscribe(ctx context.Context, _ time.Duration, _ string, handle func(driver.Event)) (driver.Subscription, error) {
	if err := f.answer(ctx, "SUBSCRIBE"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle = handle
	handle(driver.Event{Kind: driver.Subscribed})
	return f, nil
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle = nil
	return nil
}

var errDown = errors.New("connection refused")

// find returns the findings of a check that are as bad as that and say that.
func find(findings []Finding, check string, s Severity, text string) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		return f.Check != check || f.Severity != s || !strings.Contains(f.Found+"\n"+f.Reason+"\n"+f.Remedy, text)
	})
}

// complete complains about a finding that does not say why and what to do.
func complete(t *testing.T, findings []Finding) {
	t.Helper()
	for _, f := range findings {
		bad := f.Severity == Warning || f.Severity == Critical
		if f.Check == "" || f.Found == "" || bad && (f.Reason == "" || f.Remedy == "") || f.Severity == OK && f.Remedy != "" {
			t.Errorf("not complete: %+v", f)
		}
	}
}

func list(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "\n%s %s: %s | %s | %s", f.Severity, f.Check, f.Found, f.Reason, f.Remedy)
	}
	return b.String()
}
