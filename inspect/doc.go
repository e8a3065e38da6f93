// Package inspect looks at locks: who holds one, since when and what for, who waits
// in which order, what is wrong, and what happened. And it breaks a lock, which is
// all that it changes.
//
// # What an answer means
//
// What it tells was true at one moment on the server, the moment of each script's
// run, and may be over when it is read. So it serves people, dashboards and alarms.
// It is never a reason to act as if one held a lock, or as if nobody did: only
// acquiring it tells that.
//
// Whether a lock is held, by which token, with which fence, for how long still, and
// who stands in its queue comes from the lock itself. Nothing else can hide it or
// make it up. All that is told of processes (service, version, command, reason,
// TTL, under which lease one waits) is what these say of themselves, when it changed
// and every 30 s. It may be missing, or be old, and a process that wants to deceive
// can.
//
// Inspector.Show and Inspector.ShowKey see any lock. Inspector.Look, which lists,
// sees those that a process names: all that zamok's clients hold or wait for, a
// second after they came, of a client with thousands of them as many seconds as it
// has thousands, 30 at most. It does not see what foreign programs hold while nobody
// waits for it, nor more than 20,000 leases of one process: View.Unnamed counts
// these. Inspector.Scan finds both, at the price of a walk over all keys of the
// database.
//
// A process that dies is seen as such by its silence, 50 s after it last spoke, and
// by a renewal that is overdue: Lock.Silent, Lock.Late. Both can be wrong for a
// process that is only cut off, or whose server's clock was set. Neither hides a
// lock, and no lock ends because of them.
//
// Inspector.Break ends the lease that it was shown and no other, however late it
// comes.
//
// Times come from the server's clock alone: a fence is the server's time of the
// grant in microseconds, a waiter's ticket that of its arrival, and each reply
// carries the server's time now.
//
// # How to ask
//
// One lock: Show. All, or those of a pattern: Look or Scan, then View.Locks. What
// is wrong with them: Check, or Deadlocks for circles alone. What happened: Events.
package inspect
