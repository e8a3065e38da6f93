package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/proc"
)

// ref names a lock or a semaphore that somebody has or waits for.
type ref struct {
	kind      Kind
	name, key string
}

// Locks reads the locks and semaphores that the processes of the view name, and those
// that Scan found, whose titles (Lock.Title) match the pattern, in the order of these.
// The pattern is Redis's: * ? [a-z] [^a-z] and a backslash before what is meant as
// itself; the empty one matches all. One that is free and for which nobody waits is
// left out.
//
// They are read while the sequence is consumed, 256 in one pipeline, so each was
// true at a moment of its own; those that readers have, in a second one. Who their
// holders and waiters are is known from the view; a holder who came after it is
// looked up.
//
// A lock that cannot be read comes with Lock.Err and does not end the sequence.
// When ctx ends, or nothing of a pipeline is answered, one error ends it; the Lock
// beside it is empty.
func (v *View) Locks(ctx context.Context, pattern string) iter.Seq2[Lock, error] {
	return func(yield func(Lock, error) bool) {
		b := newBook(v.book) // with those who came after the view
		for part := range slices.Chunk(v.refs(pattern), batch) {
			locks, err := v.read(ctx, part)
			if err != nil {
				yield(Lock{}, err)
				return
			}
			v.in.whois(ctx, b, b.strangers(locks))
			for n := range locks {
				b.fill(&locks[n])
				if !yield(locks[n], nil) {
					return
				}
			}
		}
	}
}

// refs returns the locks whose titles match, each key once, in order. What a
// process calls a lock counts more than what its key looks like, unless the key is
// the one that belongs to a name: then that one stands, whatever others call it.
func (v *View) refs(pattern string) []ref {
	var list []ref
	known := map[string]int{} // where a key stands in the list
	add := func(name, key proc.Bytes) {
		r := v.in.ref(string(name), string(key))
		if pattern != "" && !match(pattern, title(r.kind, r.name)) {
			return
		}
		at, found := known[r.key]
		switch {
		case !found:
			known[r.key] = len(list)
			list = append(list, r)
		case key == "" && r.name != "": // of a process; Scan gives the key
			list[at] = r
		}
	}
	for _, p := range v.Processes {
		r := v.book.records[p.ID]
		for n := range r.Held {
			add(r.Held[n].Name, r.Held[n].Key)
		}
		for n := range r.Waits {
			add(r.Waits[n].Name, r.Waits[n].Key)
		}
	}
	for _, f := range v.found {
		add(proc.Bytes(f.name), proc.Bytes(f.key))
	}
	slices.SortFunc(list, func(a, b ref) int {
		return cmp.Or(strings.Compare(title(a.kind, a.name), title(b.kind, b.name)), strings.Compare(a.key, b.key))
	})
	return list
}

// ref is how a process calls a lock; with an empty key it is the one that belongs to
// the name. The name of a semaphore stands in its key, whatever it is called.
func (i *Inspector) ref(name, key string) ref {
	r := ref{KindLock, name, key}
	switch rest, ok := strings.CutPrefix(key, i.semaphoreHead()); {
	case key == "":
		r.key = i.lockHead() + name
	case ok:
		r.kind, r.name = KindSemaphore, rest
	}
	return r
}

// read asks for some locks. It leaves out those that are free.
func (v *View) read(ctx context.Context, part []ref) ([]Lock, error) {
	locks := make([]Lock, len(part))
	ask := make([]asked, 0, len(part))
	for n, r := range part {
		locks[n] = Lock{Kind: r.kind, Name: r.name, Key: r.key}
		set, err := v.in.set(r.name, r.key)
		if err != nil { // what somebody else put there
			locks[n].Err = failed(r.kind, r.name, err)
			continue
		}
		ask = append(ask, asked{&locks[n], set})
	}
	v.in.fetch(ctx, ask)
	answered := len(ask) == 0
	var last error
	for _, l := range ask {
		var se *driver.ServerError
		answered = answered || l.Err == nil || errors.As(l.Err, &se)
		if l.Err != nil {
			l.Err = failed(l.Kind, l.Name, l.Err)
			last = l.Err
		}
	}
	if ctx.Err() != nil || !answered {
		return nil, because(ctx, cmp.Or(last, ctx.Err()))
	}
	return slices.DeleteFunc(locks, func(l Lock) bool { return l.Err == nil && !l.Held && l.Waiting == 0 }), nil
}

// strangers are the holders that have not been asked yet who they are.
func (b *book) strangers(locks []Lock) []string {
	var ids []string
	known := map[string]bool{"": true}
	for n := range locks {
		for _, h := range locks[n].Holders {
			if _, asked := b.record(h.Client); !asked && !known[h.Client] {
				known[h.Client] = true
				ids = append(ids, h.Client)
			}
		}
	}
	return ids
}
