// Package keys is the only builder of the names of keys and channels.
//
// With the prefix P, the lock "report" is the key P + "lock:report". What helps
// it lives in keys that begin with P + "zamok:", contain the whole lock key, and
// share its cluster slot, so that one script may touch them all:
//
//	P + "lock:" + name                  string, the lock: TOKEN:FENCE
//	P + "zamok:queue:{" + lock key + "}" sorted set, the waiters by ticket
//	P + "zamok:fence:{NNNNNN}"          string, the last fence of that slot
//	P + "zamok:call:{" + lock key + "}:" + id  string, a guarded script ran
//	P + "semaphore:" + name              sorted set, the permits by their ends
//	P + "zamok:limit:{" + semaphore + "}" string, how many permits there are
//	P + "zamok:readers:{" + lock key + "}" sorted set, the readers by their ends
//	P + "zamok:marks:{" + lock or semaphore + "}" hash, whom of several an operator asked to stop
//	P + "zamok:broken:{" + lock key + "}" string, the lease that an operator took away
//	P + "zamok:once:{" + lock key + "}" string, what is remembered of a thing done once (package once)
//	P + "zamok:proc:{all}"              sorted set, the clients by the end of what they say
//	P + "zamok:proc:{all}:" + client id string, who that client is
//	P + "zamok:events"                  stream, what happened to leases
//	P + "zamok:node"                    string, to which server process the data belong
//	P + "zamok:inbox:" + client id      channel, one for each client
//	P + "zamok:inbox:" + client id + ":{NNNNNN}" channel, in a cluster one for each client and slot
package keys

import (
	"errors"
	"fmt"
	"strings"
)

// MaxName is the longest name, in bytes.
const MaxName = 512

// maxPrefix bounds the prefix, which is part of every key.
const maxPrefix = 128

// Set holds the keys of one lock. It is immutable. Every lease keeps one, so nothing
// stands in it twice.
type Set struct {
	Name string
	Lock string

	// Main is all of a lock, with its readers, as the slice that the scripts take,
	// built once so that a call does not allocate it. Of a semaphore how many permits
	// there are stands in their place.
	Main []string
}

// Queue returns the key of the waiters.
func (s *Set) Queue() string { return s.Main[1] }

// Fence returns the key of the last fence of the slot.
func (s *Set) Fence() string { return s.Main[2] }

// Readers returns the key of the readers of a lock.
func (s *Set) Readers() string { return s.Main[3] }

// ForName returns the keys of the lock of that name. The name is 1 to MaxName
// bytes, any but NUL.
func ForName(prefix, name string) (*Set, error) {
	return build(prefix, name, prefix+"lock:"+name)
}

// ForKey returns the keys that belong to the exact lock key given, for locks
// that are shared with another library.
func ForKey(prefix, name, key string) (*Set, error) {
	if err := checkText("key", key, MaxName+maxPrefix+len("lock:")); err != nil {
		return nil, err
	}
	return build(prefix, name, key)
}

// CheckPrefix says whether the prefix can be used.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if err := checkText("prefix", prefix, maxPrefix); err != nil {
		return err
	}
	if _, ok := tag(prefix); !ok && strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("the braces in prefix %.64q make no hash tag", prefix)
	}
	return nil
}

// Inbox returns the channel on which the client with this id is told of what it
// was given, and of what operators ask. See also Set.Inbox.
func Inbox(prefix, id string) string { return prefix + "zamok:inbox:" + id }

// Procs returns the key of the list of all clients. It shares its slot with the
// keys of Proc, so that one script writes both.
func Procs(prefix string) string { return prefix + "zamok:proc:{all}" }

// Proc returns the key under which the client with this id says who it is.
func Proc(prefix, id string) string { return Procs(prefix) + ":" + id }

// Events returns the key of the list of what happened to leases.
func Events(prefix string) string { return prefix + "zamok:events" }

// Node returns the key that says to which server process the data belong.
func Node(prefix string) string { return prefix + "zamok:node" }

// ForSemaphore returns the keys of the semaphore of that name.
func ForSemaphore(prefix, name string) (*Set, error) {
	return build(prefix, name, prefix+"semaphore:"+name)
}

// IsSemaphore says whether a key is one that ForSemaphore builds.
func IsSemaphore(prefix, key string) bool {
	return strings.HasPrefix(key, prefix+"semaphore:")
}

// One returns the key of the lock alone, as a slice.
func (s *Set) One() []string { return s.Main[:1:1] }

// Limit returns the keys of a semaphore: those of Main, with how many permits there
// are in the place of the readers.
func (s *Set) Limit() []string {
	return []string{s.Lock, s.Queue(), s.Fence(), s.helper("limit")}
}

// Reader returns the keys by which a reader asks for what it has: lock, readers, marks.
func (s *Set) Reader() []string { return []string{s.Lock, s.Readers(), s.Marks()} }

// Permit returns the keys by which one who has a permit asks for it: those of Reader,
// where the semaphore is the list of its members too.
func (s *Set) Permit() []string { return []string{s.Lock, s.Lock, s.Marks()} }

// Marks returns the key of what operators asked of those who share the lock or the
// semaphore.
func (s *Set) Marks() string { return s.helper("marks") }

// Fate returns the keys by which one who shared asks what became of its lease: fence,
// marks, and what was broken, since it may have been the writer then.
func (s *Set) Fate() []string { return []string{s.Fence(), s.Marks(), s.helper("broken")} }

// Call returns the key that remembers that the guarded call with this id ran.
func (s *Set) Call(id string) string { return s.helper("call") + ":" + id }

// Inbox returns the channel on which the client with this id is told in a cluster
// of what it was given in this slot.
func (s *Set) Inbox(id string) string {
	i := strings.LastIndex(s.Fence(), "zamok:fence:")
	return s.Fence()[:i] + "zamok:inbox:" + id + s.Fence()[i+len("zamok:fence"):]
}

// Broken returns all of a lock and the key that remembers which lease an operator
// took away. It is not kept, since only few ask.
func (s *Set) Broken() []string { return append(s.Main[:4:4], s.helper("broken")) }

// Once returns the key of what package once remembers under this lock.
func (s *Set) Once() string { return s.helper("once") }

// helper returns the key that stands beside the queue's.
func (s *Set) helper(kind string) string {
	return strings.Replace(s.Queue(), "zamok:queue:", "zamok:"+kind+":", 1)
}

func build(prefix, name, lock string) (*Set, error) {
	if err := errors.Join(CheckPrefix(prefix), checkText("name", name, MaxName)); err != nil {
		return nil, err
	}
	slot := Slot(lock)
	// A key with a valid tag of its own keeps that tag and the whole key follows
	// it, so that two locks with one tag do not share a queue. Where the prefix
	// has the tag it already stands first in every key.
	queue := "{" + lock + "}"
	if t, ok := tag(lock); ok {
		queue = "{" + t + "}" + lock
	}
	s := &Set{Name: name, Lock: lock, Main: []string{lock, prefix + "zamok:queue:" + queue, prefix + "zamok:fence:{" + slotTag(slot) + "}", ""}}
	if _, ok := tag(prefix); ok {
		slot = Slot(prefix) // the lock may be an exact key outside the prefix
	}
	if Slot(s.Lock) != slot || Slot(s.Queue()) != slot || Slot(s.Fence()) != slot {
		return nil, fmt.Errorf("the braces in %.64q make no hash tag, so its helper keys could not share its cluster slot; use no braces, or one pair with something in it", lock)
	}
	s.Main[3] = s.helper("readers")
	if IsSemaphore(prefix, lock) {
		s.Main[3] = s.helper("limit")
	}
	return s, nil
}

func checkText(field, text string, most int) error {
	switch {
	case text == "":
		return fmt.Errorf("%s is empty", field)
	case len(text) > most:
		return fmt.Errorf("%s has %d bytes; at most %d are allowed", field, len(text), most)
	case strings.IndexByte(text, 0) >= 0:
		return fmt.Errorf("%s has a NUL byte", field)
	}
	return nil
}
