package diff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/model"
)

// start is where the clock stands when a history begins, in µs: in 2027.
const start = 1_800_000_000_000_000

// world is the two sides: a server and the model.
type world struct {
	clock   *clock
	conn    *conn // sends everything, listens to all by a pattern, and to some inboxes by name
	second  *conn // listens to some inboxes by name
	sources map[string]string

	model    *model.Store
	run      string          // run_id of the server
	mine     map[string]bool // channels to which conn has subscribed
	others   map[string]bool // channels to which second has subscribed
	messages []string        // what conn must be sent
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, clock := startServer(t)
	w := &world{clock: clock, sources: sources(), mine: map[string]bool{}, others: map[string]bool{}}
	w.model = model.New(model.Env{Now: func() int64 { return clock.us }, Listeners: w.listeners, Publish: w.publish, SPublish: w.spublish})
	for _, c := range []**conn{&w.conn, &w.second} {
		var err error
		if *c, err = dial(server.Addr()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*c).Close() })
	}
	w.conn.add("INFO", "server")
	if err := w.conn.flush(); err != nil {
		t.Fatal(err)
	}
	info, err := w.conn.read()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(fmt.Sprint(info), "run_id:")
	w.run, _, _ = strings.Cut(rest, "\r\n")
	w.model.Restart(w.run)
	w.conn.add("PSUBSCRIBE", "*")
	if err := w.conn.flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

// listeners is PUBSUB NUMSUB, or SHARDNUMSUB: of a channel, only one of the two has any
// here. The subscription to the pattern does not count.
func (w *world) listeners(channel string) (n int64) {
	for _, subscribed := range []bool{w.mine[channel], w.others[channel]} {
		if subscribed {
			n++
		}
	}
	return n
}

func (w *world) publish(channel, payload string) {
	if w.mine[channel] && !driver.Sharded(channel) {
		w.messages = append(w.messages, "message "+channel+" "+payload)
	}
	w.messages = append(w.messages, "pmessage * "+channel+" "+payload)
}

// spublish reaches nobody by a pattern.
func (w *world) spublish(channel, payload string) {
	if w.mine[channel] {
		w.messages = append(w.messages, "smessage "+channel+" "+payload)
	}
}

// reset begins a history. It leaves both sides empty.
func (w *world) reset() error {
	for _, o := range []op{{name: "flushall"}, {name: "conn.unsubscribe"}, {name: "conn.unsubscribe2"}} {
		if _, err := w.both(o); err != nil {
			return err
		}
	}
	return w.clock.set(start)
}

// outcome is what an operation did, on one side.
type outcome struct {
	reply    any
	messages []string
	state    []string
}

// both does the operation on both sides and says what differs, "" if nothing.
func (w *world) both(o op) (difference string, err error) {
	if err := w.clock.set(w.clock.us + o.step); err != nil {
		return "", err
	}
	want := w.onModel(o)
	got, err := w.onServer(o)
	switch {
	case err != nil:
		return "", fmt.Errorf("%v: %w", o, err)
	case o.isScript() && !reflect.DeepEqual(got.reply, want.reply):
		return differ("replies", got.reply, want.reply), nil
	case !reflect.DeepEqual(got.messages, want.messages):
		return differ("publishes", got.messages, want.messages), nil
	case !reflect.DeepEqual(got.state, want.state):
		return differ("then has the keys", got.state, want.state), nil
	}
	return "", nil
}

func differ(what string, server, model any) string {
	a, _ := json.Marshal(server) // prints strings and numbers so that one can tell them apart
	b, _ := json.Marshal(model)
	return fmt.Sprintf("the server %s %s\n the model %s %s", what, a, what, b)
}

func (w *world) onModel(o op) outcome {
	w.messages = nil
	var reply any
	var err error
	if c, ok := commands[o.name]; ok {
		w.model.Begin()
		c.do(w.model, o.keys, o.args)
	} else if o.name == "guard" {
		reply, err = w.model.Guard(o.keys, o.args, guardedTwin(w.model))
	} else if o.name == "sem_guard" {
		reply, err = w.model.SemGuard(o.keys, o.args, guardedTwin(w.model))
	} else if o.isScript() {
		reply, _, err = w.model.Run(o.name, o.keys, o.args)
	}
	if err != nil {
		reply = kindOfError(err.Error())
	}
	return outcome{reply, w.messages, w.modelState()}
}

// kindOfError is what the two sides must agree on of an error's text: Redis
// words it differently from version to version.
func kindOfError(text string) string {
	if strings.Contains(text, "WRONGTYPE") {
		return "error WRONGTYPE"
	}
	return "error ERR"
}

func (w *world) onServer(o op) (outcome, error) {
	c := w.conn
	switch o.name {
	case "conn.subscribe":
		c.subscribe("SUBSCRIBE", o.keys)
		w.mine[o.keys[0]] = true
	case "conn.unsubscribe":
		c.subscribe("UNSUBSCRIBE", o.keys)
		remove(w.mine, o.keys)
	case "conn.subscribe2", "conn.unsubscribe2":
		if err := w.onSecond(o); err != nil {
			return outcome{}, err
		}
	case "conn.scriptflush":
		c.add(eval("return 0", nil)...) // the flush itself goes over the second connection
		if err := w.scriptFlush(); err != nil {
			return outcome{}, err
		}
	default:
		source, ok := w.sources[o.name]
		if !ok {
			return outcome{}, fmt.Errorf("no operation %q", o.name)
		}
		c.add(eval(source, o.keys, o.args...)...)
	}
	c.add(eval(dumpScript, dumpKeys)...)
	if err := c.flush(); err != nil {
		return outcome{}, err
	}
	return w.readOutcome(!strings.HasSuffix(o.name, "subscribe")) // which is answered by a push
}

// scriptFlush empties the cache of scripts on the second connection.
func (w *world) scriptFlush() error {
	w.second.add("SCRIPT", "FLUSH")
	return w.second.untilReply()
}

// readOutcome reads the operation's reply, if it has one, and the dump behind
// it. Messages come in between.
func (w *world) readOutcome(hasReply bool) (outcome, error) {
	var out outcome
	for {
		v, err := w.conn.read()
		if err != nil {
			return out, err
		}
		switch v := v.(type) {
		case push:
			if kind := v[0].(string); kind == "message" || kind == "pmessage" || kind == "smessage" {
				out.messages = append(out.messages, strings.Trim(fmt.Sprint([]any(v)), "[]"))
			}
			continue
		case *driver.ServerError:
			if !hasReply {
				return out, fmt.Errorf("the dump: %w", v)
			}
			out.reply = kindOfError(v.Text)
		default:
			if hasReply {
				out.reply = v
				break
			}
			for _, line := range v.([]any) {
				out.state = append(out.state, line.(string))
			}
			return out, nil
		}
		hasReply = false
	}
}

// onSecond subscribes and unsubscribes the second connection, and waits until
// that is done.
func (w *world) onSecond(o op) error {
	if o.name == "conn.subscribe2" {
		w.second.subscribe("SUBSCRIBE", o.keys)
		w.others[o.keys[0]] = true
	} else {
		w.second.subscribe("UNSUBSCRIBE", o.keys)
		remove(w.others, o.keys)
	}
	w.second.add("PING") // its reply comes behind the confirmation
	w.conn.add(eval("return 0", nil)...)
	return w.second.untilReply()
}

// subscribe adds SUBSCRIBE or UNSUBSCRIBE of one channel, or of all, of either kind.
func (c *conn) subscribe(command string, channel []string) {
	if len(channel) == 0 || !driver.Sharded(channel[0]) {
		c.add(append([]string{command}, channel...)...)
	}
	if len(channel) == 0 || driver.Sharded(channel[0]) {
		c.add(append([]string{"S" + command}, channel...)...)
	}
}

// untilReply sends what was added and skips all that was pushed before the reply.
func (c *conn) untilReply() error {
	if err := c.flush(); err != nil {
		return err
	}
	for {
		v, err := c.read()
		if _, ok := v.(push); !ok || err != nil {
			return err
		}
	}
}

// remove takes out the channels named, all if none is.
func remove(set map[string]bool, channels []string) {
	if len(channels) == 0 {
		clear(set)
	}
	for _, ch := range channels {
		delete(set, ch)
	}
}

func eval(source string, keys []string, args ...string) []string {
	cmd := append([]string{"EVAL", source, fmt.Sprint(len(keys))}, keys...)
	return append(cmd, args...)
}
