package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

// limit bounds each call to the server, beside ctx.
const limit = 5 * time.Second

// batch is how many locks List asks for in one pipeline.
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

// Show looks at one lock. One that nobody holds is not an error: Held is false.
// The error is a *zamok.ConfigError for a bad name, and wraps the driver's
// otherwise.
func (i *Inspector) Show(ctx context.Context, name string) (Lock, error) {
	set, err := keys.ForName(i.prefix, name)
	if err != nil {
		return Lock{}, &zamok.ConfigError{Field: "name", Err: err}
	}
	reply, err := i.d.Eval(ctx, call(set))
	if err != nil {
		return Lock{}, failed(name, err)
	}
	l, err := parseLock(name, set.Lock, reply)
	if err != nil {
		return Lock{}, err
	}
	locks := []Lock{l}
	i.identify(ctx, locks)
	return locks[0], nil
}

// identify adds to the locks what their holders say of themselves. What cannot
// be had is left empty: a lock is shown all the same.
func (i *Inspector) identify(ctx context.Context, locks []Lock) {
	var calls []driver.Call
	asked := map[string]int{} // client → index of its call
	for _, l := range locks {
		if id := l.Holder.Client; id != "" {
			if _, ok := asked[id]; !ok {
				asked[id] = len(calls)
				calls = append(calls, driver.Call{Script: lua.Whois, Keys: []string{keys.Proc(i.prefix, id)}, Limit: limit})
			}
		}
	}
	if len(calls) == 0 {
		return
	}
	results := i.d.EvalAll(ctx, calls)
	for n := range locks {
		l := &locks[n]
		at, ok := asked[l.Holder.Client]
		if !ok || results[at].Err != nil {
			continue
		}
		text, _ := results[at].Reply.(string)
		if r, ok := proc.Parse(text); ok {
			l.Service, l.Reason = r.Service, r.Reasons[l.Holder.Token]
		}
	}
}

// List looks at all locks whose name matches the pattern, sorted by name. The
// pattern is Redis's: * ? [a-z] and a backslash before what is meant as itself;
// the empty one matches all.
//
// It walks over the keys of the whole database (SCAN), so it costs as much as
// there are keys, and it does not see locks with a MutexConfig.Key of their own.
// A lock that was taken while it walked may be missing.
func (i *Inspector) List(ctx context.Context, pattern string) ([]Lock, error) {
	if pattern == "" {
		pattern = "*"
	}
	names, err := i.scan(ctx, pattern)
	if err != nil {
		return nil, err
	}
	var locks []Lock
	for part := range slices.Chunk(names, batch) {
		locks = append(locks, i.showAll(ctx, part)...)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("inspect: %w", context.Cause(ctx))
		}
	}
	return locks, nil
}

// showAll leaves out what was released meanwhile.
func (i *Inspector) showAll(ctx context.Context, names []string) []Lock {
	var locks []Lock
	var calls []driver.Call
	var sets []*keys.Set
	for _, name := range names {
		set, err := keys.ForName(i.prefix, name)
		if err != nil { // a key that somebody else put there
			locks = append(locks, Lock{Name: name, Key: i.prefix + "lock:" + name, Err: err})
			continue
		}
		sets = append(sets, set)
		calls = append(calls, call(set))
	}
	for n, result := range i.d.EvalAll(ctx, calls) {
		set := sets[n]
		l, err := Lock{}, result.Err
		if err == nil {
			l, err = parseLock(set.Name, set.Lock, result.Reply)
		}
		switch {
		case err != nil:
			locks = append(locks, Lock{Name: set.Name, Key: set.Lock, Err: failed(set.Name, err)})
		case l.Held || l.Waiting > 0:
			locks = append(locks, l)
		}
	}
	i.identify(ctx, locks)
	slices.SortFunc(locks, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	return locks
}

// scan returns the names that match, sorted, each once: SCAN may tell a key
// several times.
func (i *Inspector) scan(ctx context.Context, pattern string) ([]string, error) {
	head := i.prefix + "lock:"
	match := escape(head) + pattern
	var names []string
	for cursor := "0"; ; {
		reply, err := i.d.Do(ctx, limit, "SCAN", cursor, "MATCH", match, "COUNT", "1000")
		if err != nil {
			return nil, fmt.Errorf("inspect: looking for locks: %w", err)
		}
		r := fields{list: asList(reply)}
		cursor = r.text()
		for _, key := range asList(r.next()) {
			if name, ok := strings.CutPrefix(fmt.Sprint(key), head); ok {
				names = append(names, name)
			}
		}
		if r.bad {
			return nil, fmt.Errorf("inspect: SCAN was answered with %.200q", reply)
		}
		if cursor == "0" {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

func call(set *keys.Set) driver.Call {
	return driver.Call{Script: lua.Inspect, Keys: set.Three, Args: []string{strconv.Itoa(MaxWaiters)}, Limit: limit}
}

func failed(name string, err error) error { return fmt.Errorf("inspect: lock %q: %w", name, err) }

// escape makes text match only itself in a pattern.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]\^`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
