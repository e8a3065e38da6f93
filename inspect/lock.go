package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/zamok-go/zamok"
)

// Kind is what a Lock is.
type Kind string

// The kinds.
const (
	KindLock      Kind = "lock"      // of a Mutex, or of an RWMutex that its writer has, or nobody
	KindReadLock  Kind = "read-lock" // of an RWMutex that readers have
	KindSemaphore Kind = "semaphore"
)

// Lock is one lock or semaphore as the server saw it at one moment. What is not
// known of it is the zero value: a lock is shown whatever is missing.
type Lock struct {
	Kind Kind

	// Name is the name of the Mutex, the RWMutex or the Semaphore. Of a lock that
	// ShowKey was asked for it is the name that its holder gives it or, when nobody
	// says, the key.
	Name string
	Key  string // on the server

	// Held: the name is taken, by one of ours, by readers, by a foreign program, or
	// by the rest after a holder with MutexConfig.MinHold; of a semaphore, somebody
	// has a permit.
	Held bool
	// Holders are those who have it: one of a lock, the first MaxHolders of a
	// semaphore and of readers, of them who has had it longest first, and those of
	// whom that is not known last. It is empty when nobody does, and of a key of
	// readers that have gone and left it without a TTL.
	Holders []Holder
	Holding int           // how many in all
	Left    time.Duration // until nobody holds it, if nothing is renewed
	NoTTL   bool          // the key never ends by itself: Left says nothing

	// Permits is how many permits a semaphore has. Fixed: it was set for all who use
	// it (Semaphore.SetLimit); otherwise it is the most that a process says that has
	// one or waits for one, 0 when none does. Holding may be more, after it was made
	// less.
	Permits int
	Fixed   bool

	Waiters []Waiter // in order, the first MaxWaiters of them
	Waiting int      // how many in all

	// Err is why this one of many could not be read, such as a key of another
	// type. Then nothing else is set but Kind, Name and Key.
	Err error

	// value is what a foreign program left under the key, all of it, so that Break
	// takes it for no other: Holder.Token has its first 256 bytes.
	value string
	// claimed is the name under which a holder has it.
	claimed string
	// now is the server's time in µs when it was read.
	now int64
	// fewest is the least number of permits that a process says.
	fewest int
}

// Title is the name of a lock, and of a semaphore "semaphore:" and its name: the two
// of one name have nothing to do with each other.
func (l Lock) Title() string { return title(l.Kind, l.Name) }

func title(k Kind, name string) string {
	if k == KindSemaphore {
		return "semaphore:" + name
	}
	return name
}

// First is who has the lock; of several, the first of Holders; the zero value when
// there is none.
func (l Lock) First() Holder {
	if len(l.Holders) == 0 {
		return Holder{}
	}
	return l.Holders[0]
}

// Shared says whether several may have it at a time.
func (l Lock) Shared() bool { return l.Kind == KindReadLock || l.Kind == KindSemaphore }

// settle puts the holders in their order.
func (l *Lock) settle() {
	slices.SortStableFunc(l.Holders, func(a, b Holder) int { return cmp.Compare(b.Since, a.Since) })
}

// Holder is one who has a lock, a reader's share of one, or a permit.
type Holder struct {
	zamok.Holder

	// Fence and Since are the fence of the lease and the time since the grant; 0 when
	// not known: of a foreign holder, and of readers and permits unless their process
	// tells. After Lease.Downgrade they are the writer's.
	Fence int64
	Since time.Duration
	Left  time.Duration // until it ends if it is not renewed

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
	// cut off from the server: then the lease ends when Left is over.
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
}

// BrokenBy is who broke a lease, and why.
type BrokenBy struct {
	By  string
	Why string
}

// MaxHolders is how many holders of a semaphore, or readers, are listed: those whose
// leases end first. MaxWaiters is how many waiters are.
const (
	MaxHolders = 1000
	MaxWaiters = 1000
)

// Waiter is one who stands in the queue of a lock.
type Waiter struct {
	Place  int // from 1
	Holder zamok.Holder
	Mode   string        // what it waits for: "w" or "W" to have the lock alone, "r" to read, "p" for a permit
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

// Reads says whether it waits to read beside others.
func (w Waiter) Reads() bool { return w.Mode == "r" }
