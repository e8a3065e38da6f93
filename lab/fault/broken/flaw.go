package broken

// Flaw is what is wrong with a lock.
type Flaw string

const (
	// None: nothing is known to be wrong.
	None Flaw = "none"
	// DeletesAnyones: a release deletes the lock, whose ever it is.
	DeletesAnyones Flaw = "release without a look at the owner"
	// EndsLater: the lock gets its TTL by a second command.
	EndsLater Flaw = "SET NX and a separate EXPIRE"
	// CountsFromReply: the lease is thought to begin when the reply is there.
	CountsFromReply Flaw = "validity not reduced by what passed"
	// ExtendsBlindly: an extension of unknown outcome is taken for one.
	ExtendsBlindly Flaw = "extended when the reply was lost"
	// CountsFences: the fence is a counter.
	CountsFences Flaw = "INCR for a fence"
	// HearsOnly: who waits looks again when it is told to, and only then.
	HearsOnly Flaw = "waits for messages without a timer"
	// ForgetsItself: a request that is repeated finds its own lock and takes it for
	// another's.
	ForgetsItself Flaw = "acquire not idempotent"
	// KeepsPlaces: who gives up waiting stays in the queue.
	KeepsPlaces Flaw = "a waiter that gave up stays in the queue"
	// LastFirst: the last in the queue is served first.
	LastFirst Flaw = "last come, first served"
	// ReadsAnyway: who wants to read does not look whether somebody writes.
	ReadsAnyway Flaw = "a reader that does not look at the writer"
	// WritesAnyway: who wants to write does not look whether somebody reads.
	WritesAnyway Flaw = "a writer that does not look at readers"
	// GrantsOneMore: there is a permit more than there should be.
	GrantsOneMore Flaw = "semaphore of one permit too many"
	// ClientClocks: ends of permits are by the clocks of clients.
	ClientClocks Flaw = "semaphore by clients' clocks"
	// WritesBlind: a write is sent when the client thinks that its lease holds.
	WritesBlind Flaw = "guarded write without a look at the owner"
	// RunsAgain: a thing is done by whoever finds no outcome.
	RunsAgain Flaw = "once without a claim"
	// ForgetsFences: the largest fence of a majority is not written back to it.
	ForgetsFences Flaw = "fences of a majority without write-back"
	// GivesUp: a holder is told that its lease is lost though it has it.
	GivesUp Flaw = "lease lost for nothing"
	// KeepsContexts: the context goes on when the lease is over.
	KeepsContexts Flaw = "context that does not end"
	// SaysHeld: who does not wait is told that another holds it.
	SaysHeld Flaw = "held by nobody"
)
