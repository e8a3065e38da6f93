// Package model is the executable specification of zamok's protocol: what every
// script of package lua does, restated in Go over a small store.
//
// It exists for two readers. A newcomer reads it instead of the Lua: the
// operations are in the order of a lock's life (acquire.go, handover.go,
// release.go, renew.go, resume.go, inspect.go, guard.go, break.go), then those of
// readers (readers.go, read_acquire.go, downgrade.go) and of semaphores (permits.go,
// sem_acquire.go, sem_release.go, sem_renew.go, sem_limit.go), what operators do to
// both (roll.go, mark.go), then what clients say of themselves and of what happened (announce.go, note.go),
// and what is said of the server (node.go), beside the store that they change (store.go, zset.go, stream.go). And package
// driver/memory runs it, so that the engine above can be tried in virtual time.
//
// That both tell the truth is held by lab/diff: it sends random operations to
// a real server and to this package and compares every reply, every key with
// its type, value and expiry, and every message. Each branch here counts how
// often it was taken (see Branch), and the comparison is void unless each was
// taken often.
//
// # The lock in one page
//
// Three keys belong to a lock.
//
// The lock itself is a string TOKEN:FENCE with a time to live. It exists: the
// lock is held, by that token, or by a stranger if the value is anything else.
// It does not exist: the lock is free.
//
// The queue is a sorted set of those who wait. A member is
// MODE|TOKEN|TTL|INBOX, its score is a ticket: the server's time in µs when it
// joined, or one more than the last one's ticket if that is larger. So tickets
// grow, and the first in the set came first. The inbox is the channel on which
// the waiter listens, or "-" for one that may not subscribe and polls.
//
// The fence is a counter: the last fencing number given out.
//
// Every step is atomic, since a server runs one script at a time:
//
//   - Acquire takes a free lock, or joins the queue. If the lock is free and
//     somebody queues, the first of those who still listen gets it, be it the
//     caller or not.
//   - Release by the holder hands the lock to the first who still listens and
//     tells it by a message; it is free only if nobody is left.
//   - Renew raises the holder's time to live, and never shortens one.
//   - Resume passes a held lock from one token to another.
//   - Guard runs the caller's own script if the token holds the lock.
//   - Break by an operator marks the value, TOKEN:FENCE!NOTE: the token holds the
//     lock still, but nothing raises its time to live any more. Or it hands the
//     lock on at once, and another key remembers from whom, and why.
//
// # Readers in one paragraph
//
// While some read, the value of the lock says only that, z1-read:FENCE, and a sorted
// set says who: their tokens, each with the ms of the server's clock at which its
// lease ends. The lock lasts as long as the last of them. The set counts only beside
// that value, and whoever writes the value anew empties it first, so nobody is a
// reader of an earlier time. A reader waits in the queue of all, in mode r; a
// hand-over to one lets in all that stand behind it up to the first writer, and a
// reader who comes while others read is let in if nobody waits.
//
// # The semaphore in one paragraph
//
// It is a lock with several permits, so it is a sorted set: the tokens that have
// one, each with the ms of the server's clock at which it ends. Whoever looks first
// takes out what has ended. Queue, fence and messages are those of a lock, and so is
// the way to the first who still listens; there can be several of them at once. How
// many permits there are, the key limit says, or else each caller. A permit's fence is
// not stored, so a second run with one token is answered with a new one.
//
// # What is taken from a server, exactly
//
// A key expires when the server's clock in ms is larger than its deadline; at
// the deadline it is still there, with 0 ms left. Expiry does not move while a
// script runs, and here neither does the time that a script reads: it reads it
// once, so the difference cannot be seen. Scores and fences are numbers below
// 2^53. A Lua table ends at its first nil, so a reply in which the fence is
// missing, because the lock's value was garbage behind the token, has one
// element.
//
// Calls whose arguments no engine would make (a ttl that is no number) are
// refused here with an ERR; the scripts refuse them too, but not in the same
// words.
package model
