package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrCluster says that a cluster cannot be walked over, since each of its servers
// knows its own keys alone. From Scan; Look works there.
var ErrCluster = errors.New("inspect: a cluster has no one list of keys")

// Scan is Look, and finds besides the locks that no process names: those of
// foreign programs, or of a process that may not say what it holds.
//
// It walks over the keys of the whole database (SCAN), so it costs as much as
// there are keys. It does not see locks with a MutexConfig.Key outside of the
// prefix, but those that processes name; a lock that was taken while it walked may
// be missing.
//
// The error wraps the driver's, says why ctx ended, or is ErrCluster.
func (i *Inspector) Scan(ctx context.Context) (*View, error) {
	// A server that does not tell, or does not let us ask, is taken for one alone.
	if info, err := i.d.Do(ctx, limit, "INFO", "server"); err == nil && strings.Contains(fmt.Sprint(info), "_mode:cluster") {
		return nil, ErrCluster
	}
	v, err := i.Look(ctx)
	if err != nil {
		return nil, err
	}
	if v.found, err = i.scan(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// scan returns the locks under the prefix, each once: SCAN may tell a key several
// times.
func (i *Inspector) scan(ctx context.Context) ([]ref, error) {
	// One pattern for both, so that one walk finds both: what it finds besides is
	// left out here.
	pattern := escape(i.prefix) + "[ls][oe][cm][ka]*"
	var found []ref
	known := map[string]bool{}
	for cursor := "0"; ; {
		reply, err := i.d.Do(ctx, limit, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
		if err != nil {
			return nil, fmt.Errorf("inspect: looking for locks: %w", because(ctx, err))
		}
		r := fields{list: asList(reply)}
		cursor = r.text()
		for _, key := range asList(r.next()) {
			key, _ := key.(string)
			if r, ok := i.refOf(key); ok && !known[key] {
				known[key] = true
				found = append(found, r)
			}
		}
		if r.bad {
			return nil, fmt.Errorf("inspect: SCAN was answered with %.200q", reply)
		}
		if cursor == "0" {
			break
		}
	}
	return found, nil
}

// refOf is what a key is of, if it is that of a lock or a semaphore.
func (i *Inspector) refOf(key string) (ref, bool) {
	if name, ok := strings.CutPrefix(key, i.lockHead()); ok {
		return ref{KindLock, name, key}, true
	}
	name, ok := strings.CutPrefix(key, i.semaphoreHead())
	return ref{KindSemaphore, name, key}, ok
}
