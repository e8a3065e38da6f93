package inspect

import (
	"context"
	"slices"
	"strconv"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// asked is a lock that is being read.
type asked struct {
	*Lock
	set *keys.Set
}

// set returns the keys of a lock or a semaphore; with an empty key it is the lock that
// belongs to the name. A lock that is known by its key alone has that for a name, and it may
// be longer than a name.
func (i *Inspector) set(name, key string) (*keys.Set, error) {
	if key == "" || key == i.lockHead()+name {
		return keys.ForName(i.prefix, name)
	}
	if key == i.semaphoreHead()+name {
		return keys.ForSemaphore(i.prefix, name)
	}
	return keys.ForKey(i.prefix, name[:min(len(name), keys.MaxName)], key)
}

// lockHead is what the keys of all locks begin with, but of those with a key of
// their own; semaphoreHead, those of semaphores.
func (i *Inspector) lockHead() string      { return i.prefix + "lock:" }
func (i *Inspector) semaphoreHead() string { return i.prefix + "semaphore:" }

// kindOf is what a key is of, as far as the key tells.
func (i *Inspector) kindOf(key string) Kind {
	if keys.IsSemaphore(i.prefix, key) {
		return KindSemaphore
	}
	return KindLock
}

// fetch reads locks in one pipeline; and of those that readers have, who these are
// in a second, since that stands beside the lock. Where all of them have gone
// between the two, it asks once more.
func (i *Inspector) fetch(ctx context.Context, locks []asked) {
	for range 2 {
		i.eval(ctx, locks, (*asked).call)
		locks = slices.DeleteFunc(slices.Clone(locks), func(a asked) bool { return a.Err != nil || a.Kind != KindReadLock })
		if len(locks) == 0 {
			return
		}
		i.eval(ctx, locks, (*asked).readersCall)
		locks = slices.DeleteFunc(locks, func(a asked) bool { return a.Err != nil || a.Holding > 0 || a.NoTTL })
	}
}

// eval asks one thing of each lock. One that cannot be read has its Err.
func (i *Inspector) eval(ctx context.Context, locks []asked, call func(*asked) driver.Call) {
	if len(locks) == 0 {
		return
	}
	calls := make([]driver.Call, len(locks))
	for n := range locks {
		calls[n] = call(&locks[n])
	}
	for n, result := range i.d.EvalAll(ctx, calls) {
		l := locks[n].Lock
		err := result.Err
		if err == nil {
			err = l.read(calls[n].Script, result.Reply)
		}
		if err != nil {
			*l = Lock{Kind: i.kindOf(l.Key), Name: l.Name, Key: l.Key, Err: err}
		}
	}
}

// call asks for all but who reads.
func (a *asked) call() driver.Call {
	if a.Kind == KindSemaphore {
		return a.roll(a.set.Lock, MaxWaiters)
	}
	return driver.Call{Script: lua.Inspect, Keys: a.set.Broken(), Args: []string{strconv.Itoa(MaxWaiters)}, Limit: limit}
}

// readersCall asks who reads.
func (a *asked) readersCall() driver.Call { return a.roll(a.set.Readers(), 0) }

func (a *asked) roll(members string, waiters int) driver.Call {
	k := a.set.Limit()
	return driver.Call{
		Script: lua.Roll, Keys: []string{members, k[1], k[2], k[3], a.set.Marks()},
		Args: []string{strconv.Itoa(MaxHolders), strconv.Itoa(waiters)}, Limit: limit,
	}
}
