package memory

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Twin restates a Lua script in Go. keys and args are the script's own, as in
// Lua but counted from 0. fence is the lease's, 0 in a script that is not
// guarded. It runs as one atomic step, and reaches the server by tx alone, which
// is not to be kept. It returns nil, an int, int64, string, bool, or a slice of
// these, which become what a driver makes of such a reply. An error becomes one
// of the server, and what the twin did before it stays done, as with Lua.
type Twin func(tx *Tx, keys, args []string, fence int64) (any, error)

// Define tells the server what a script of that name does, since it runs no
// Lua: a script that a lease runs under its guard, or one that is sent as it
// is. Scripts of zamok itself need no twin and cannot be given another one.
func (s *Server) Define(scriptName string, twin Twin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twins[scriptName] = twin
}

// How the names of scripts begin that run under a lease: lua.Guard has wrapped the
// one, lua.SemGuard the other, for a permit of a semaphore.
const (
	guardPrefix  = "guard:"
	permitPrefix = "permit:"
)

// runTwin runs a script that is not zamok's own. mu is held.
func (s *Server) runTwin(script string, keys, args []string) (any, error) {
	name, guarded := strings.CutPrefix(script, guardPrefix)
	permit := false
	if !guarded {
		name, permit = strings.CutPrefix(script, permitPrefix)
	}
	twin, ok := s.twins[name]
	if !ok {
		return nil, &driver.ServerError{Text: fmt.Sprintf(
			"ERR the in-memory server runs no Lua: say what script %q does with Define(%q, func(tx *memory.Tx, keys, args []string, fence int64) (any, error))", name, name)}
	}
	tx := &Tx{s}
	body := func(keys, args []string, fence string) (any, error) {
		n, _ := strconv.ParseInt(fence, 10, 64) // 0 for a value that carries none
		v, err := twin(tx, keys, args, n)
		return reply(v), asServerError(err)
	}
	switch {
	case guarded:
		return s.store.Guard(keys, args, body)
	case permit:
		return s.store.SemGuard(keys, args, body)
	}
	s.store.Begin()
	return body(keys, args, "0")
}

// reply turns what a twin returns into what a driver would.
func reply(v any) any {
	switch v := v.(type) {
	case nil, int64, string:
		return v
	case int:
		return int64(v)
	case bool:
		if v {
			return int64(1)
		}
		return nil
	case []string:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = reply(v[i])
		}
		return list
	}
	return fmt.Sprint(v)
}

func asServerError(err error) error {
	if err == nil {
		return nil
	}
	if se, ok := err.(*driver.ServerError); ok {
		return se
	}
	return &driver.ServerError{Text: "ERR " + err.Error()}
}

// Tx is the server as a twin sees it. A command on a key of another type fails
// with WRONGTYPE.
type Tx struct{ s *Server }

// Get is GET; ok is false if there is no such key.
func (tx *Tx) Get(key string) (value string, ok bool, err error) { return tx.s.store.Get(key) }

// Set is SET, with PX when ttl is positive.
func (tx *Tx) Set(key, value string, ttl time.Duration) error {
	return tx.s.store.Set(key, value, millis(ttl))
}

// Incr is INCRBY.
func (tx *Tx) Incr(key string, by int64) (int64, error) { return tx.s.store.Incr(key, by) }

// Del is DEL; it returns whether there was such a key.
func (tx *Tx) Del(key string) bool { return tx.s.store.Del(key) }

// HSet is HSET; it returns whether the field is new.
func (tx *Tx) HSet(key, field, value string) (bool, error) { return tx.s.store.HSet(key, field, value) }

// HGet is HGET; ok is false if there is no such field.
func (tx *Tx) HGet(key, field string) (value string, ok bool, err error) {
	return tx.s.store.HGet(key, field)
}

// Publish is PUBLISH; it returns to how many subscriptions the message goes.
func (tx *Tx) Publish(channel, payload string) int64 {
	tx.s.publish(channel, payload)
	return tx.s.listeners(channel)
}

// Time is TIME, in µs since 1970.
func (tx *Tx) Time() int64 { return tx.s.store.Time() }

// millis rounds up, so that a short time does not become none.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
