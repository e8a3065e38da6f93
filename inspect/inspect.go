package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
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

// Show looks at one lock, and asks who its holders and its waiters are, of them all
// the first 256 processes. One that nobody holds is not an error: Held is
// false. It costs two requests, one more when a holder has not renewed for more
// than 20 s, and one more when readers have the lock.
//
// The error is a *zamok.ConfigError for a bad name, and wraps the driver's
// otherwise. What cannot be had of the processes is left empty.
func (i *Inspector) Show(ctx context.Context, name string) (Lock, error) {
	return i.show(ctx, "name", name, i.lockHead()+name)
}

// ShowSemaphore is Show for a semaphore.
func (i *Inspector) ShowSemaphore(ctx context.Context, name string) (Lock, error) {
	return i.show(ctx, "name", name, i.semaphoreHead()+name)
}

// ShowKey is Show for a lock with a MutexConfig.Key, of which key is that key, and
// for whatever else has this key.
func (i *Inspector) ShowKey(ctx context.Context, key string) (Lock, error) {
	name := key
	for _, head := range []string{i.lockHead(), i.semaphoreHead()} {
		if rest, ok := strings.CutPrefix(key, head); ok && rest != "" {
			name = rest
		}
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
	l := Lock{Kind: i.kindOf(set.Lock), Name: name, Key: set.Lock}
	i.fetch(ctx, []asked{{&l, set}})
	if l.Err != nil {
		return Lock{}, failed(l.Kind, name, l.Err)
	}
	i.identify(ctx, &l)
	return l, nil
}

func failed(k Kind, name string, err error) error {
	what := "lock"
	if k == KindSemaphore {
		what = "semaphore"
	}
	return fmt.Errorf("inspect: %s %q: %w", what, name, err)
}
