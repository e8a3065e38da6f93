package memory

import (
	"slices"
	"time"
)

// The methods here are a test's own hands on the keys. They work at once,
// whatever is broken.

// step runs f as one step at one instant.
func (s *Server) step(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.Begin()
	f()
}

// Set sets a string key, replacing whatever is there. It expires after ttl, or
// never if ttl is 0.
func (s *Server) Set(key, value string, ttl time.Duration) {
	s.step(func() { _ = s.store.Set(key, value, millis(ttl)) }) // fails on an overflow only
}

// SetList replaces the key by one of a type that zamok never uses.
func (s *Server) SetList(key string) { s.step(func() { s.store.MakeList(key) }) }

// Get returns a string key. ok is false if there is none, or one of another
// type.
func (s *Server) Get(key string) (value string, ok bool) {
	s.step(func() { value, ok, _ = s.store.Get(key) })
	return value, ok
}

// HGet returns a field of a hash that a twin made.
func (s *Server) HGet(key, field string) (value string, ok bool) {
	s.step(func() { value, ok, _ = s.store.HGet(key, field) })
	return value, ok
}

// Del deletes keys.
func (s *Server) Del(keys ...string) {
	s.step(func() {
		for _, key := range keys {
			s.store.Del(key)
		}
	})
}

// TTL returns what is left of a key, in whole ms; negative if it never expires.
// ok is false if there is no such key.
func (s *Server) TTL(key string) (left time.Duration, ok bool) {
	var ms int64
	s.step(func() { ms = s.store.PTTL(key) })
	return time.Duration(ms) * time.Millisecond, ms != -2
}

// Expire changes what is left of a key. 0 deletes it, a negative ttl lets it
// never expire.
func (s *Server) Expire(key string, ttl time.Duration) {
	s.step(func() {
		if ttl < 0 {
			s.store.Persist(key)
		} else {
			s.store.PExpire(key, millis(ttl))
		}
	})
}

// Type returns what TYPE returns: "string", "zset", "hash", "stream", "list" or
// "none".
func (s *Server) Type(key string) (kind string) {
	s.step(func() { kind = string(s.store.Type(key)) })
	return kind
}

// ZAdd adds a member to a sorted set, unless it is in it. It does nothing to a
// key of another type.
func (s *Server) ZAdd(key, member string, score float64) {
	s.step(func() { _, _ = s.store.ZAdd(key, member, score) })
}

// ZCard returns the size of a sorted set.
func (s *Server) ZCard(key string) int { return len(s.ZMembers(key)) }

// ZMembers returns the members of a sorted set in their order.
func (s *Server) ZMembers(key string) []string {
	var members []string
	s.step(func() {
		all, _ := s.store.ZRange(key) // nothing, for a key of another type
		for _, m := range all {
			members = append(members, m.Member)
		}
	})
	return members
}

// Entries returns the texts of a stream, such as that of what happened to leases,
// oldest first. There are none in a key of another type.
func (s *Server) Entries(key string) []string {
	var texts []string
	s.step(func() {
		all, _ := s.store.XRange(key)
		for _, e := range all {
			texts = append(texts, e.Text)
		}
	})
	return texts
}

// Keys returns the names of all keys, sorted.
func (s *Server) Keys() []string {
	var keys []string
	s.step(func() { keys = s.store.Keys() })
	slices.Sort(keys)
	return keys
}
