// Package locker has the libraries that the race compares, one file each, behind one
// interface: those that others wrote, what one writes by hand, zamok's scripts without
// zamok, and zamok with both drivers.
//
// Each is used as its own documentation says, with its own default options, but where
// this would compare settings and not libraries: those are named beside the option.
package locker

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Kind is a library on a client library of Redis.
type Kind struct {
	Name   string // "zamok/goredis"
	Family string // "zamok"
	On     string // "goredis"

	// Sends are the commands that it sends as requests. The server counts what a
	// script runs by the same names, which no request of this library has.
	Sends []string

	Peer   bool // written by others
	Waits  bool // its Lock waits while another holds
	Renews bool // it renews what is held, and says when that fails

	Open func(addr string, o Options) (Client, error)
	// Quorum opens a lock that several independent servers decide together. Nil: it
	// has none, or its scripts have none without an engine.
	Quorum func(addrs []string) (Client, error)
}

// Options are what a scenario wants of a client. The zero value is what most do.
type Options struct {
	Mode    Mode
	Permits int           // of a Permit
	TTL     time.Duration // 0: 15 s
	// Apart has each waiter of a client stand in the queue for itself. Zamok's would
	// otherwise pass the lock on among themselves. Others have no such choice.
	Apart bool
}

func (o Options) ttl() time.Duration {
	if o.TTL == 0 {
		return 15 * time.Second
	}
	return o.TTL
}

// Mode is as what a name is locked. Others than zamok and its scripts have Mutex alone.
type Mode int

// The modes.
const (
	Mutex Mode = iota
	Reader
	Writer
	Permit
)

// Client is what a process has of a library: one client of it, with one of the client
// library below.
type Client interface {
	// Of makes what locks a name. It is made once for a name, as a program would.
	Of(name string) Take
	Close()
}

// Take waits until the name is locked. It is used by one goroutine at a time.
type Take func(ctx context.Context) (Held, error)

// Held is a lock that is held.
type Held interface {
	Release(ctx context.Context) error
	// Lost is closed when the holder must no longer believe that it holds. Nil: the
	// library does not say.
	Lost() <-chan struct{}
	// Fence is 0 where there is none.
	Fence() int64
}

// scripted are the requests of a library that sends scripts alone, and subscribes.
func scripted() []string { return []string{"evalsha", "eval", "subscribe", "unsubscribe"} }

// settled are those that also set the key by a plain command.
func settled() []string { return append(scripted(), "set") }

// All returns the libraries, the floors first and zamok last, as tables have them.
func All() []Kind {
	return []Kind{
		rawOnGoRedis(), rawOnRueidis(), scriptsOnGoRedis(), scriptsOnRueidis(),
		redsyncKind(), redislockKind(), rueidislockKind(),
		zamokOnGoRedis(), zamokOnRueidis(),
	}
}

// Find returns the kinds of these names, in their order.
func Find(names []string) ([]Kind, error) {
	all := append(All(), Canned())
	var found []Kind
	for _, name := range names {
		i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no locker is named %q", name)
		}
		found = append(found, all[i])
	}
	return found, nil
}

// noSign is of locks of which the library says nothing while they are held.
type noSign struct{}

func (noSign) Lost() <-chan struct{} { return nil }

// Fence is that there is none.
func (noSign) Fence() int64 { return 0 }
