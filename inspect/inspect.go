package inspect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// limit bounds each call to the server, beside ctx.
const limit = 5 * time.Second

// batch is how many calls are sent in one pipeline.
const batch = 256

// Inspector looks at the locks under one prefix. It may be used from many
// goroutines at once.
type Inspector struct {
	d      driver.Driver
	prefix string
}

// New returns an Inspector for the locks of clients with this prefix
// (zamok.Config.Prefix). The error is a *zamok.ConfigError.
func New(d driver.Driver, prefix string) (*Inspector, error) {
	if d == nil {
		return nil, &zamok.ConfigError{Field: "driver", Err: errors.New("it is nil")}
	}
	if err := keys.CheckPrefix(prefix); err != nil {
		return nil, &zamok.ConfigError{Field: "prefix", Err: err}
	}
	return &Inspector{d: d, prefix: prefix}, nil
}

// Show looks at one lock, and asks who its holder and its waiters are, of the
// waiters the first 256 processes. One that nobody holds is not an error: Held is
// false. It costs two requests, or three when the holder has not renewed for more
// than 20 s.
//
// The error is a *zamok.ConfigError for a bad name, and wraps the driver's
// otherwise. What cannot be had of the processes is left empty.
func (i *Inspector) Show(ctx context.Context, name string) (Lock, error) {
	return i.show(ctx, "name", name, "")
}

// ShowKey is Show for a lock with a MutexConfig.Key, of which key is that key.
func (i *Inspector) ShowKey(ctx context.Context, key string) (Lock, error) {
	name := key
	if rest, ok := strings.CutPrefix(key, i.lockHead()); ok && rest != "" {
		name = rest
	}
	l, err := i.show(ctx, "key", name, key)
	if n := l.claimed; n != "" {
		l.Name = n
	}
	return l, err
}

// show tells a mistake by the name of the argument that it is in.
func (i *Inspector) show(ctx context.Context, field, name, key string) (Lock, error) {
	set, err := i.set(name, key)
	if err != nil {
		return Lock{}, &zamok.ConfigError{Field: field, Err: err}
	}
	reply, err := i.d.Eval(ctx, call(set))
	if err != nil {
		return Lock{}, failed(name, err)
	}
	l, err := parseLock(name, set.Lock, reply)
	if err != nil {
		return Lock{}, err
	}
	i.identify(ctx, &l)
	return l, nil
}

// lockHead is what the keys of all locks begin with, but of those with a key of
// their own.
func (i *Inspector) lockHead() string { return i.prefix + "lock:" }

// set returns the keys of a lock; with an empty key it is the one that belongs to
// the name. A lock that is known by its key alone has that for a name, and it may
// be longer than a name.
func (i *Inspector) set(name, key string) (*keys.Set, error) {
	if key == "" || key == i.lockHead()+name {
		return keys.ForName(i.prefix, name)
	}
	return keys.ForKey(i.prefix, name[:min(len(name), keys.MaxName)], key)
}

func call(set *keys.Set) driver.Call {
	return driver.Call{Script: lua.Inspect, Keys: set.Broken(), Args: []string{strconv.Itoa(MaxWaiters)}, Limit: limit}
}

func failed(name string, err error) error { return fmt.Errorf("inspect: lock %q: %w", name, err) }
