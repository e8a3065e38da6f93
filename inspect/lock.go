package inspect

import (
	"time"

	"github.com/zamok-go/zamok"
)

// Lock is one lock as the server saw it at one moment. What is not known of it is
// the zero value: a lock is shown whatever is missing.
type Lock struct {
	// Name is the name of the Mutex. Of a lock that ShowKey was asked for it is
	// the name that its holder gives it or, when nobody says, the key.
	Name string
	Key  string // on the server

	// Held: the name is taken, by one of ours, by a foreign program, or by the
	// rest after a holder with MutexConfig.MinHold. See Holder.
	Held   bool
	Holder zamok.Holder
	Fence  int64         // 0 for a foreign holder
	Since  time.Duration // since the grant; 0 when not known
	Left   time.Duration // until it ends if it is not renewed
	NoTTL  bool          // the key never ends by itself: Left says nothing

	// Service, Version and Command are what the holder's process says of itself
	// (Config.Name, Version, Command), Up is how long its client has been there (of
	// Show perhaps up to 30 s less), and Reason what it holds the lock for
	// (MutexConfig.Reason).
	Service string
	Version string
	Command string
	Reason  string
	Up      time.Duration

	// TTL is what renewals raise the lease to.
	TTL time.Duration
	// Late is how long the next renewal is overdue; 0 when it is on time, when
	// nothing is known, and when nobody should renew. The holder may be gone, or
	// cut off from the server: then the lock ends when Left is over.
	Late time.Duration
	// Detached: it was given away by Lease.Detach, for another process to go on
	// with. Nobody renews it meanwhile.
	Detached bool
	// Silent: the holder's process should have said within the last 50 s that it
	// lives, and has not, nor has it renewed this lease lately. It is gone, or cut
	// off. A process of which nothing at all is known is not called silent. It
	// never hides the lock.
	Silent bool
	// Broken: an operator asked the holder to end the lease, which is still there.
	// Nil otherwise.
	Broken *BrokenBy

	Waiters []Waiter // in order, the first MaxWaiters of them
	Waiting int      // how many in all

	// Err is why this one of many could not be read, such as a key of another
	// type. Then nothing else is set but Name and Key.
	Err error

	// value is what a foreign program left under the key, all of it, so that Break
	// takes it for no other: Holder.Token has its first 256 bytes.
	value string
	// claimed is the name under which the holder has it.
	claimed string
}

// BrokenBy is who broke a lease, and why.
type BrokenBy struct {
	By  string
	Why string
}

// MaxWaiters is how many waiters of a lock are listed.
const MaxWaiters = 1000

// Waiter is one who stands in the queue of a lock.
type Waiter struct {
	Place  int // from 1
	Holder zamok.Holder
	Mode   string        // what it waits for; "w" is a Mutex
	TTL    time.Duration // the lease that it asks for
	Waited time.Duration

	// Alive: somebody listens at its inbox. One that does not is passed over
	// when its turn comes. One that polls because it may not subscribe counts as
	// alive: nobody can tell.
	Alive bool
	Polls bool

	// Service and Command are what the waiter's process says of itself.
	Service string
	Command string
	// Under has the tokens of the leases under which it waits: whoever has one of
	// them goes on only when this wait is over. Empty when there are none, and when
	// nothing is known.
	Under []string
}
