package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// Scripts is the family of the floors: zamok's own scripts, called directly on the
// client library. There is no driver of ours, and no engine: no time limit, no deadline,
// no renewal, no second look, no clean-up. What zamok takes more, these cost.
const Scripts = "scripts"

// runScript calls one script and returns the first two fields of its reply.
type runScript func(ctx context.Context, keys, args []string) (status, fence string, err error)

// scriptCaller is a client library.
type scriptCaller interface {
	script(source string) runScript
	subscribe(ctx context.Context, channel string, handle func(payload string)) error
	close()
}

func scriptsOnGoRedis() Kind {
	return Kind{Name: "scripts/goredis", Family: Scripts, On: "goredis", Sends: scripted(), Waits: true,
		Open: func(addr string, o Options) (Client, error) {
			return newScripts(&goRedisScripts{client: onGoRedis(addr)}, o), nil
		}}
}

func scriptsOnRueidis() Kind {
	return Kind{Name: "scripts/rueidis", Family: Scripts, On: "rueidis", Sends: scripted(), Waits: true,
		Open: func(addr string, o Options) (Client, error) {
			c, err := onRueidis(addr)
			if err != nil {
				return nil, err
			}
			return newScripts(&rueidisScripts{client: c}, o), nil
		}}
}

// scripts is one client of the floor.
type scripts struct {
	caller           scriptCaller
	options          Options
	ttl              string
	acquire, release runScript
	id               string
	calls            atomic.Int64

	mu    sync.Mutex // of what follows
	inbox string     // empty until somebody had to wait
	waits map[string]chan string
}

func newScripts(caller scriptCaller, o Options) *scripts {
	take, give := lua.Acquire, lua.Release
	switch o.Mode {
	case Reader:
		take = lua.ReadAcquire
	case Permit:
		take, give = lua.SemAcquire, lua.SemRelease
	}
	source := (*driver.Script).Source
	return &scripts{
		caller: caller, options: o, ttl: strconv.FormatInt(o.ttl().Milliseconds(), 10),
		acquire: caller.script(source(take)), release: caller.script(source(give)),
		id: "z1/host/1/" + rand.Text(), waits: make(map[string]chan string),
	}
}

func (s *scripts) Of(name string) Take {
	keysOf, mode, tail := keys.ForName, "w", []string(nil)
	switch s.options.Mode {
	case Reader:
		mode = "r"
	case Permit:
		keysOf, mode, tail = keys.ForSemaphore, "p", []string{strconv.Itoa(s.options.Permits)}
	}
	set, err := keysOf("", name)
	return func(ctx context.Context) (Held, error) {
		if err != nil {
			return nil, err
		}
		h := &scriptHeld{of: s, keys: set.Main, token: s.id + "/" + strconv.FormatInt(s.calls.Add(1), 10)}
		return h, h.take(ctx, mode, tail)
	}
}

func (s *scripts) Close() { s.caller.close() }

// listen subscribes once, at the first wait.
func (s *scripts) listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inbox != "" {
		return nil
	}
	inbox := "zamok:inbox:" + s.id
	if err := s.caller.subscribe(ctx, inbox, s.told); err != nil {
		return err
	}
	s.inbox = inbox
	return nil
}

// told wakes the waiter of a grant: "grant TOKEN FENCE …".
func (s *scripts) told(payload string) {
	words := strings.SplitN(payload, " ", 4)
	if len(words) < 4 || words[0] != "grant" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait, ok := s.waits[words[1]]; ok {
		delete(s.waits, words[1])
		wait <- words[2]
	}
}

// scriptHeld is a lock of the floor.
type scriptHeld struct {
	noSign
	of    *scripts
	keys  []string
	token string
	fence string
}

// take asks, and when the lock is held asks once more, as one who waits, and waits.
func (h *scriptHeld) take(ctx context.Context, mode string, tail []string) error {
	s := h.of
	s.mu.Lock()
	inbox := s.inbox
	s.mu.Unlock()
	for {
		var wait chan string
		if inbox != "" { // the grant may come before the reply
			wait = make(chan string, 1)
			s.mu.Lock()
			s.waits[h.token] = wait
			s.mu.Unlock()
		}
		// Only the wait ends with ctx. Who gives up a call does not know what came of it, and
		// to find that out is what an engine is for.
		status, fence, err := s.acquire(context.Background(), h.keys, append([]string{h.token, s.ttl, inbox, "0", mode}, tail...))
		switch {
		case err != nil:
			return err
		case status == "granted":
			h.fence = fence
			if inbox != "" {
				s.forget(h.token)
			}
			return nil
		case status == "waits":
			select {
			case h.fence = <-wait:
				return nil
			case <-ctx.Done():
				s.forget(h.token)
				member := mode + "|" + h.token + "|" + s.ttl + "|" + inbox
				return errors.Join(ctx.Err(), h.leave(context.Background(), member))
			}
		case inbox != "":
			return fmt.Errorf("acquire: %s", status)
		}
		if err := s.listen(context.Background()); err != nil {
			return err
		}
		inbox = s.inbox
	}
}

func (s *scripts) forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, token)
}

func (h *scriptHeld) Release(ctx context.Context) error { return h.leave(ctx, "") }

// leave gives up the lock, or the place in the queue where that member stands.
func (h *scriptHeld) leave(ctx context.Context, member string) error {
	third := "0" // rest, or how many permits there are
	if h.of.options.Mode == Permit {
		third = strconv.Itoa(h.of.options.Permits)
	}
	_, _, err := h.of.release(ctx, h.keys, []string{h.token, member, third})
	return err
}

// Fence is the server's.
func (h *scriptHeld) Fence() int64 {
	n, _ := strconv.ParseInt(h.fence, 10, 64)
	return n
}
