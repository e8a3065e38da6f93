package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func answerCases() []serverCase {
	return []serverCase{
		{"ServerErrors", caseServerErrors},
		{"RightsWithdrawn", caseRightsWithdrawn},
		{"Password", casePassword},
		{"Replica", caseReplica},
		{"OnlyEvalsha", caseOnlyEvalsha},
		{"ScriptFlush", caseScriptFlush},
		{"ScriptFlushUnderLoad", caseScriptFlushUnderLoad},
		{"RESP3Types", caseRESP3Types},
		{"PlainCommands", casePlainCommands},
	}
}

// asServer runs a script on a plain connection and returns the server's words.
func (e *env) asServer(s *driver.Script, keys, args []string) string {
	e.Helper()
	cmd := append([]string{"EVAL", s.Source(), fmt.Sprint(len(keys))}, append(keys, args...)...)
	_, err := e.server.Do(cmd...)
	var se *driver.ServerError
	if !errors.As(err, &se) {
		e.Fatalf("%v was not refused: %v", s, err)
	}
	return se.Text
}

// sameError runs the script through the driver and compares, in both ways of
// sending it.
func (e *env) sameError(d driver.Driver, s *driver.Script, keys, args []string) {
	e.Helper()
	want := e.asServer(s, keys, args)
	c := call(s, keys, args...)
	_, err := d.Eval(e.Context(), c)
	for _, err := range []error{err, d.EvalAll(e.Context(), []driver.Call{c})[0].Err} {
		var se *driver.ServerError
		if !errors.As(err, &se) {
			e.Errorf("%v: %T %v, want a ServerError %q", s, err, err, want)
		} else if se.Text != want {
			e.Errorf("%v:\ngot  %q\nwant %q", s, se.Text, want)
		}
	}
}

// The engine decides by the server's words whether a fault is permanent, and an
// operator searches the web for them: they must not be changed. A library may
// cut a prefix off or know some errors by types of its own.
func caseServerErrors(e *env) {
	d := e.driver()
	e.server.MustDo("LPUSH", "list", "x")
	for _, s := range []*driver.Script{
		driver.NewScript("wrong type", "return redis.call('GET', KEYS[1])"),
		driver.NewScript("unknown command", "return redis.call('NOSUCH')"),
		driver.NewScript("wrong arguments", "return redis.call('GET')"),
		driver.NewScript("runtime error", "local x = nil\nreturn x + 1"),
		driver.NewScript("raised", "error('own words')"),
		driver.NewScript("own code", "return redis.error_reply('ZAMOK no')"),
		driver.NewScript("ERR", "return redis.error_reply('ERR no')"),
		driver.NewScript("passed on", "return redis.pcall('GET', KEYS[1])"),
		driver.NewScript("like retried", "return redis.error_reply('CLUSTERDOWN not really')"),
	} {
		e.sameError(d, s, []string{"list"}, nil)
	}
	// This one is refused by SCRIPT LOAD, and leaves no trace.
	broken := driver.NewScript("syntax error", "return (")
	if _, err := d.Eval(e.Context(), call(broken, nil)); code(err) != "ERR" || !strings.Contains(err.Error(), "compiling") {
		e.Errorf("syntax error: %v", err)
	}
	works(e, d)
}

// Rights may be withdrawn while a process runs: from a command that a script
// calls, and from EVALSHA itself.
func caseRightsWithdrawn(e *env) {
	d := e.driver()
	e.server.MustDo("ACL", "SETUSER", "default", "-incr")
	e.sameError(d, incr, []string{"k"}, nil)
	e.server.MustDo("ACL", "SETUSER", "default", "-evalsha")
	_, err := d.Eval(e.Context(), call(incr, []string{"k"}))
	if code(err) != "NOPERM" || !strings.Contains(err.Error(), "evalsha") {
		e.Errorf("without the right to EVALSHA: %v", err)
	}
}

// A password may be set, or changed, while a process runs. Connections that
// exist go on, and the next one is refused.
func casePassword(e *env) {
	setPassword := func(password string) {
		e.server.MustDo("CONFIG", "SET", "requirepass", password)
		for _, kind := range []string{"normal", "pubsub"} {
			e.server.MustDo("CLIENT", "KILL", "TYPE", kind)
		}
	}
	refused := func(d driver.Driver, want string) {
		e.Helper()
		// The first call may still use a connection that has just been closed.
		var err error
		eventually(e, want, func() bool {
			_, err = d.Eval(e.Context(), call(echo, nil, "x"))
			return isServerError(err)
		})
		if code(err) != want {
			e.Errorf("Eval: %v, want %s", err, want)
		}
		if r := d.EvalAll(e.Context(), []driver.Call{call(echo, nil, "x"), call(null, nil)}); code(r[1].Err) != want {
			e.Errorf("EvalAll: %v, want %s", r[1].Err, want)
		}
		if _, err := d.Subscribe(e.Context(), long, "ch", func(driver.Event) {}); code(err) != want {
			e.Errorf("Subscribe: %v, want %s", err, want)
		}
	}
	d := e.driver()
	setPassword("old")
	refused(d, "NOAUTH")
	d = e.driverAt("redis://:old@" + e.server.Addr())
	setPassword("new")
	refused(d, "WRONGPASS")
	setPassword("old")
	works(e, d)
}

// A primary may become a replica. That is an answer, and the next call may find
// the new primary.
func caseReplica(e *env) {
	d := e.driver()
	primary := StartServer(e)
	host, port, _ := strings.Cut(primary.Addr(), ":")
	e.server.MustDo("REPLICAOF", host, port)
	e.sameError(d, incr, []string{"k"}, nil)
	e.server.MustDo("REPLICAOF", "NO", "ONE")
	if n, err := d.Eval(e.Context(), call(incr, []string{"k"})); n != int64(1) {
		e.Errorf("after it is a primary again: %v, %v", n, err)
	}
}

// EVAL sends kilobytes each time, and newer servers throw away scripts that
// came by it.
func caseOnlyEvalsha(e *env) {
	d := e.newDriver(e, e.server.URL())
	before := e.server.Commands()
	for range 10 {
		if _, err := d.Eval(e.Context(), call(incr, []string{"k"})); err != nil {
			e.Fatal(err)
		}
		for _, r := range d.EvalAll(e.Context(), []driver.Call{call(incr, []string{"k"}), call(incr, []string{"k"})}) {
			if r.Err != nil {
				e.Fatal(r.Err)
			}
		}
	}
	got := e.server.Commands().Since(before)
	loads := got["script|load"] + got["script"] // as servers before 7.0 name it
	if got["evalsha"] != 30 || got["incr"] != 30 || got["eval"] != 0 || loads != 1 {
		e.Errorf("commands of 30 calls of one script: %v", got)
	}
}

// A restart, a failover or an operator may empty the server's cache of scripts
// at any time, also in the middle of a pipeline. Nothing has run then, and the
// caller sees nothing of it.
func caseScriptFlush(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	e.server.MustDo("SCRIPT", "FLUSH")
	before := e.server.Commands()
	for i := range 3 {
		if n, err := d.Eval(e.Context(), call(incr, []string{"k"})); n != int64(i+1) {
			e.Errorf("call %d after the flush: %v, %v", i+1, n, err)
		}
	}
	if got := e.server.Commands().Since(before); got["eval"] != 1 || got["evalsha"] != 3 {
		e.Errorf("commands of 3 calls: %v", got)
	}

	e.server.MustDo("SCRIPT", "FLUSH")
	d.Eval(e.Context(), call(incr, []string{"other"}))
	f := p.Hold(Containing("evalsha", "b"))
	done := make(chan []driver.Result, 1)
	go func() {
		done <- d.EvalAll(e.Context(), []driver.Call{
			call(incr, []string{"a"}), call(incr, []string{"b"}), call(echo, nil, "x"), call(incr, []string{"c"}),
		})
	}()
	<-f.Fired()
	eventually(e, "the first call of the pipeline", func() bool { return e.server.MustDo("EXISTS", "a") == int64(1) })
	e.server.MustDo("SCRIPT", "FLUSH")
	f.Release()
	var got []any
	for _, r := range <-done {
		if got = append(got, r.Reply); r.Err != nil {
			e.Error(r.Err)
		}
	}
	if want := []any{int64(1), int64(1), "x", int64(1)}; !slices.Equal(got, want) {
		e.Errorf("got %v, want %v", got, want)
	}
}

// Field case 21: no error reaches a caller.
func caseScriptFlushUnderLoad(e *env) {
	d := e.driver()
	stop := make(chan struct{})
	var flusher, callers sync.WaitGroup
	flusher.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.server.Do("SCRIPT", "FLUSH")
			case <-stop:
				return
			}
		}
	})
	for range 8 {
		callers.Go(func() {
			for range 100 {
				if _, err := d.Eval(e.Context(), call(incr, []string{"k"})); err != nil {
					e.Error(err)
				}
				for _, r := range d.EvalAll(e.Context(), []driver.Call{call(incr, []string{"k"}), call(echo, nil, "x")}) {
					if r.Err != nil {
						e.Error(r.Err)
					}
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	flusher.Wait()
	if got := e.server.MustDo("GET", "k"); got != "1600" {
		e.Errorf("1600 calls counted %v", got)
	}
}

// A script may switch to the types of RESP3, and a connection speaks RESP2 or
// RESP3 as the user's options have it: the engine sees the same.
func caseRESP3Types(e *env) {
	d := e.driver()
	for lua, want := range map[string]any{
		"return true":             int64(1),
		"return false":            nil,
		"return 3.99":             int64(3),
		"return {1, nil, 3}":      []any{int64(1)},
		"return {double = 3.5}":   "3.5",
		"return {ok = 'FINE'}":    "FINE",
		"return {map = {a = 1}}":  []any{"a", int64(1)},
		"return {set = {a = 1}}":  []any{"a"},
		"return {big_number='9'}": "9",
	} {
		s := driver.NewScript(lua, "redis.setresp(3) "+lua)
		got, err := d.Eval(e.Context(), call(s, nil))
		if lua == "return false" && got == int64(0) { // false is not nil in RESP3
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			e.Errorf("%s: %v (%T), %v", lua, got, got, err)
		}
	}
}

// Health, the server's identity and listings come by plain commands.
func casePlainCommands(e *env) {
	d := e.driver()
	do := func(args ...string) any {
		v, err := d.Do(e.Context(), long, args...)
		if err != nil {
			e.Errorf("%v: %v", args, err)
		}
		return v
	}
	if v := do("PING"); v != "PONG" {
		e.Errorf("PING: %v", v)
	}
	// In RESP3 this is a verbatim string, which begins with its format.
	if v, _ := do("INFO", "server").(string); !strings.HasPrefix(v, "# Server\r\n") || !strings.Contains(v, "run_id:") {
		e.Errorf("INFO: %.40q", v)
	}
	if v, _ := do("SCAN", "0", "COUNT", "1000", "MATCH", "warm:*").([]any); len(v) != 2 || v[0] != "0" || len(v[1].([]any)) == 0 {
		e.Errorf("SCAN: %v", v)
	}
	// In RESP3 this is a map.
	if v := do("CONFIG", "GET", "maxmemory-policy"); !reflect.DeepEqual(v, []any{"maxmemory-policy", "noeviction"}) {
		e.Errorf("CONFIG GET: %v", v)
	}
	if v := do("GET", "nosuch"); v != nil {
		e.Errorf("GET of nothing: %v", v)
	}
	_, want := e.server.Do("NOSUCH", "x")
	if _, err := d.Do(e.Context(), long, "NOSUCH", "x"); !isServerError(err) || err.Error() != want.Error() {
		e.Errorf("unknown command: %v, want %v", err, want)
	}
}
