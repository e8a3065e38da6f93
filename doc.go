// Package zamok gives programs on many machines a lease: the right to use a named
// resource for a bounded time. It is decided by a script on a Redis or Valkey
// server, renewed while it is held, and provable afterwards by a fencing number.
//
// # What is promised
//
// On one server, at most one holder has a lease of a name within its validity, as
// long as
//
//   - the holder stops its work when the lease's context ends;
//   - the server keeps its data: it does not restart without it, is not wiped, does
//     not evict keys (maxmemory-policy noeviction), and does not fail over to a
//     replica that lacks the last writes;
//   - the server's clock is not stepped, and no clock runs more than 1 % faster or
//     slower than another;
//   - nobody else writes zamok's keys.
//
// A lease's validity ends, by the holder's own clock, before the server lets the
// lock go: the holder stops first. Waiters are served in the order in which they
// came, but for some milliseconds in which goroutines of one process pass a lock on
// among themselves (Config.HandOver); those that died are skipped. Fences grow from holder to holder; that they
// fail to takes a loss of data together with a clock that was set back.
//
// # What is not promised
//
// A process can be paused between any two instructions, by its scheduler, its
// garbage collector or its hypervisor, for longer than its lease. When it wakes it
// acts once more before it can notice. No lock service can prevent that, so a lock
// alone must not be what the correctness of data rests on. Three things close the
// gap:
//
//   - Lease.Run writes to the same server, in one step with the question whether
//     the lease still holds;
//   - Lease.Fence is a number for other resources to refuse an older holder by;
//   - Lease.Context ends early enough for work that can be stopped.
//
// When the server loses data, two holders can overlap for as long as the first one
// has not noticed, a third of its TTL; their fences say who is the newer.
// docs/guarantees.md has the whole table, and what closes each gap.
//
// # Use
//
// A Client talks through a driver to the client library that a program has
// already: see modules zamokgoredis and zamokrueidis, and package driver/memory
// for tests. A Mutex is a name with options; it holds nothing. Mutex.Do waits for
// the lock, runs a function under it and releases it; Mutex.Lock returns the Lease
// instead. An RWMutex lets in many readers or one writer, a Multi takes several names or
// none, and a Semaphore is a lock with several permits. An error never means that
// the lock is held by another, unless it is a *HeldError.
package zamok
