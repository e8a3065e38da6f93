package model

import (
	"math"
	"strconv"

	"github.com/zamok-go/zamok/driver"
)

// Env is what a store needs of the world around it. All of it is called while an
// operation runs, and must not call the store.
type Env struct {
	// Now returns the server's clock in µs since 1970.
	Now func() int64
	// Listeners returns how many connections have subscribed to the channel by
	// its name (those by a pattern do not count: PUBSUB NUMSUB; PUBSUB SHARDNUMSUB
	// of a channel that is driver.Sharded).
	Listeners func(channel string) int64
	// Publish delivers a message to everybody who subscribed.
	Publish func(channel, payload string)
	// SPublish is SPUBLISH: to those who subscribed at the slot.
	SPublish func(channel, payload string)
}

// Store holds the keys of one server. It is not safe for use by several
// goroutines at once.
type Store struct {
	env     Env
	keys    map[string]entry
	us, ms  int64 // the instant at which the running operation began
	sweepAt int   // number of keys at which the expired ones are looked for
	scratch []byte
	run     string // run_id of the server process
	hits    [branchCount]int64
}

// Kind is the type of a key, as the command TYPE names it.
type Kind string

// The kinds of keys. A list stands for every type that zamok does not use.
const (
	None   Kind = "none"
	String Kind = "string"
	ZSet   Kind = "zset"
	Hash   Kind = "hash"
	Stream Kind = "stream"
	List   Kind = "list"
)

type entry struct {
	kind     Kind
	str      string
	set      *zset
	hash     map[string]string
	stream   *stream
	deadline int64 // ms since 1970; 0: never
}

// New returns an empty store.
func New(env Env) *Store {
	s := &Store{env: env, keys: make(map[string]entry), sweepAt: 64, run: "0"}
	s.Begin()
	return s
}

// Restart makes the keys those of another server process, with that run_id: one that
// was started with them, or a replica that took them over.
func (s *Store) Restart(run string) { s.run = run }

// Begin takes the time at which all that follows happens, until the next Begin.
// The operations (Acquire and so on) begin by themselves; the plain commands do
// not, so that several can be one atomic step.
func (s *Store) Begin() {
	s.us = s.env.Now()
	s.ms = s.us / 1000
}

// Time returns the time taken by Begin, in µs.
func (s *Store) Time() int64 { return s.us }

// lookup returns the key's entry; the zero entry if there is none. An expired
// key is deleted when it is met, as a server does.
func (s *Store) lookup(key string) (entry, bool) {
	e, ok := s.keys[key]
	if ok && e.deadline != 0 && s.ms > e.deadline {
		delete(s.keys, key)
		return entry{}, false
	}
	return e, ok
}

// typed is lookup for a command that works on one kind only.
func (s *Store) typed(key string, kind Kind) (entry, bool, error) {
	e, ok := s.lookup(key)
	if ok && e.kind != kind {
		return entry{}, false, wrongType()
	}
	return e, ok, nil
}

func (s *Store) put(key string, e entry) {
	s.keys[key] = e
	if len(s.keys) > s.sweepAt {
		s.sweep()
	}
}

// sweep deletes what has expired and was never asked for again. It runs when
// the number of keys has doubled, so its cost for each key stored is constant.
func (s *Store) sweep() {
	for key := range s.keys {
		s.lookup(key)
	}
	s.sweepAt = max(64, 2*len(s.keys))
}

func (s *Store) exists(key string) bool {
	_, ok := s.lookup(key)
	return ok
}

// setPX is SET key value PX ms.
func (s *Store) setPX(key, value string, ms int64) error {
	if ms <= 0 || ms > math.MaxInt64-s.ms {
		return refuse("ERR invalid expire time in 'set' command")
	}
	s.put(key, entry{kind: String, str: value, deadline: s.ms + ms})
	return nil
}

// Get is GET.
func (s *Store) Get(key string) (value string, ok bool, err error) {
	e, ok, err := s.typed(key, String)
	return e.str, ok, err
}

// Set is SET, with PX when ttl (ms) is not 0. Like SET it replaces a key of any
// type.
func (s *Store) Set(key, value string, ttl int64) error {
	if ttl != 0 {
		return s.setPX(key, value, ttl)
	}
	s.put(key, entry{kind: String, str: value})
	return nil
}

// setKeep is SET with KEEPTTL, of a string that is there.
func (s *Store) setKeep(key, value string) {
	e, _ := s.lookup(key)
	e.str = value
	s.keys[key] = e
}

// Incr is INCRBY.
func (s *Store) Incr(key string, by int64) (int64, error) {
	e, ok, err := s.typed(key, String)
	if err != nil {
		return 0, err
	}
	var n int64
	if ok {
		if n, err = strconv.ParseInt(e.str, 10, 64); err != nil {
			return 0, refuse("ERR value is not an integer or out of range")
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		return 0, refuse("ERR increment or decrement would overflow")
	}
	e.kind, e.str = String, strconv.FormatInt(n+by, 10)
	s.put(key, e)
	return n + by, nil
}

// Del is DEL, for one key.
func (s *Store) Del(key string) bool {
	ok := s.exists(key)
	delete(s.keys, key)
	return ok
}

// HSet is HSET, for one field. It returns whether the field is new.
func (s *Store) HSet(key, field, value string) (bool, error) {
	e, ok, err := s.typed(key, Hash)
	if err != nil {
		return false, err
	}
	if !ok {
		e = entry{kind: Hash, hash: make(map[string]string)}
		s.put(key, e)
	}
	_, had := e.hash[field]
	e.hash[field] = value
	return !had, nil
}

// HGet is HGET.
func (s *Store) HGet(key, field string) (value string, ok bool, err error) {
	e, _, err := s.typed(key, Hash)
	value, ok = e.hash[field]
	return value, ok, err
}

// HGetAll is HGETALL. The map is the store's own: it is for reading, until the hash
// changes.
func (s *Store) HGetAll(key string) (map[string]string, error) {
	e, _, err := s.typed(key, Hash)
	return e.hash, err
}

// PTTL is PTTL: ms left, -1 for a key that does not expire, -2 for no key.
func (s *Store) PTTL(key string) int64 {
	e, ok := s.lookup(key)
	switch {
	case !ok:
		return -2
	case e.deadline == 0:
		return -1
	}
	return e.deadline - s.ms
}

// Deadline is PEXPIRETIME: ms since 1970, -1 for a key that does not expire, -2
// for no key.
func (s *Store) Deadline(key string) int64 {
	if left := s.PTTL(key); left < 0 {
		return left
	}
	return s.keys[key].deadline
}

// PExpire is PEXPIRE: a key with nothing left is deleted at once.
func (s *Store) PExpire(key string, ms int64) {
	e, ok := s.lookup(key)
	if !ok {
		return
	}
	if ms <= 0 {
		delete(s.keys, key)
		return
	}
	e.deadline = s.ms + ms
	s.keys[key] = e
}

// Persist is PERSIST.
func (s *Store) Persist(key string) {
	if e, ok := s.lookup(key); ok {
		e.deadline = 0
		s.keys[key] = e
	}
}

// MakeList replaces the key by one of a type that zamok never uses.
func (s *Store) MakeList(key string) { s.put(key, entry{kind: List}) }

// Type is TYPE.
func (s *Store) Type(key string) Kind {
	e, ok := s.lookup(key)
	if !ok {
		return None
	}
	return e.kind
}

// Keys returns the names of all keys, in no order.
func (s *Store) Keys() []string {
	names := make([]string, 0, len(s.keys))
	for key := range s.keys {
		if s.exists(key) {
			names = append(names, key)
		}
	}
	return names
}

// Flush is FLUSHALL.
func (s *Store) Flush() { clear(s.keys) }

func wrongType() error {
	return refuse("WRONGTYPE Operation against a key holding the wrong kind of value")
}

func refuse(text string) error { return &driver.ServerError{Text: text} }
