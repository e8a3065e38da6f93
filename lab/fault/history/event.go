package history

// Op is what was done.
type Op string

// What workers do. Acquire waits and Try does not; Look asks the lease itself
// whether it still holds, without the server. Run is one execution of the function
// of Once. A Key is one that was found on the server when all leases were over.
//
// Ended is when somebody who waits for the end of a lease's context was told: late, on
// a busy machine, and never early. Each lease has one unless its process was killed, its
// program never ended it, or it was taken on by another. Its outcome is OK when the
// holder had released it or given it away, Lost, with the Reason, when it was lost, and
// Cancelled when the context that it was taken under ended first, after which it is not
// renewed; Until is the lease's deadline then.
const (
	Acquire   Op = "acquire"
	Try       Op = "try"
	Resume    Op = "resume"
	Renew     Op = "renew"
	Look      Op = "look"
	Ended     Op = "ended"
	Downgrade Op = "downgrade"
	Detach    Op = "detach"
	Release   Op = "release"
	Write     Op = "write"
	Read      Op = "read"
	Once      Op = "once"
	Run       Op = "run"
	Key       Op = "key"
)

// Takes reports whether op is one that gives a lease.
func (op Op) Takes() bool { return op == Acquire || op == Try || op == Resume }

// Kind is what it was done to.
type Kind string

// The kinds of leases; the registers that leases guard, Guarded on the server,
// written by a guarded script, and Outside, which compares fences itself, of those who
// hold alone: a Mutex or a Writer; Shared, which is Guarded of those who do not: readers
// and permits, whose fences say nothing about each other; and the policies of Once.
const (
	Mutex   Kind = "mutex"
	Reader  Kind = "reader"
	Writer  Kind = "writer"
	Permit  Kind = "permit"
	Guarded Kind = "guarded"
	Outside Kind = "outside"
	Shared  Kind = "shared"
	GiveUp  Kind = "give-up"
	Retry   Kind = "retry"
)

// Outcome is what came of it.
type Outcome string

const (
	// Pending: it did not return. Only the reader makes it, of a process that ended.
	Pending Outcome = ""
	// OK: it was done.
	OK Outcome = "ok"
	// Held: another has it. Nothing was changed.
	Held Outcome = "held"
	// Cancelled: the caller's context ended first. Nobody has it through this call,
	// but the server may go on thinking so until the client has taken it back.
	Cancelled Outcome = "cancelled"
	// Lost: the lease was over. Of a write: nothing was written.
	Lost Outcome = "lost"
	// Refused: nothing was changed, for another reason.
	Refused Outcome = "refused"
	// Unknown: it may have been done, or may yet be.
	Unknown Outcome = "unknown"
)

// Definite reports whether it is known that o changed the server or that it did
// not, and will not.
func (o Outcome) Definite() bool { return o == OK || o == Held || o == Lost || o == Refused }

// Event is one thing that a worker did.
type Event struct {
	Proc   string `json:"p"`           // the process, the name of its file; set by Log
	ID     int64  `json:"i"`           // of one process's events; set by Log
	Client string `json:"cl,omitzero"` // within the process
	Op     Op     `json:"op"`
	Kind   Kind   `json:"k,omitzero"`
	Name   string `json:"n,omitzero"` // of the lock, register, key
	// Lease says which events are of one lease; it is unique in a history. It is
	// not the lease's token, which a program that hands leases on must not see. One
	// that was resumed is another lease.
	Lease   string  `json:"l,omitzero"`
	From    string  `json:"fr,omitzero"` // the lease that was resumed
	Call    int64   `json:"c"`           // before it was asked for
	Return  int64   `json:"r,omitzero"`  // after the answer; 0: none
	Outcome Outcome `json:"o,omitzero"`
	Fence   int64   `json:"f,omitzero"`
	// Until is the lease's deadline as it was known when the event was written.
	Until int64 `json:"u,omitzero"`
	// Queued is when the caller was first told, of a quorum by one member, that it stands
	// in the server's queue: a lease of any kind that was asked for after that comes after
	// it, but one that was Passed. 0: it was never told, or stood behind others of its own
	// client before that: then its place is by an estimate of when it came.
	Queued int64  `json:"q,omitzero"`
	Limit  int    `json:"m,omitzero"` // permits of the semaphore
	TTL    int64  `json:"t,omitzero"` // what was asked for, of a renewal too, or what a key has left; ns; of a key that has none -1
	Value  int64  `json:"v,omitzero"` // written, read, or the outcome; 0: none
	Handed bool   `json:"h,omitzero"` // by the last holder's release, in one trip, or Passed
	Text   string `json:"x,omitzero"` // of the error, for who reads a violation
	// Passed: by the last holder, who is of the same client, and nobody asked the server.
	// That goes on for some milliseconds, during which nobody elsewhere is served.
	Passed bool `json:"ps,omitzero"`
	// Times is how often the value that was read had been written: of a guarded register,
	// where it is one more for each run of the script. More than 1 is one too many.
	Times int64 `json:"ts,omitzero"`
	// Reason is why a lease was lost, one of zamok's.
	Reason string `json:"w,omitzero"`
	// Least is for how long after its grant, and at most after its release, nobody else
	// gets what was taken, however early it is released; Most is when its holder loses it,
	// however it is renewed. In ns; 0: nothing of the kind was asked for.
	Least int64 `json:"le,omitzero"`
	Most  int64 `json:"mo,omitzero"`
}

// Fault is something that was done to the system on purpose.
type Fault struct {
	Kind   string `json:"fault"`
	Target string `json:"target,omitzero"` // what it was done to
	From   int64  `json:"from"`            // before it began
	Till   int64  `json:"till,omitzero"`   // after it ended; 0: it did not
	// Kills and Stops name the process of the history that had no life from then on,
	// or between.
	Kills  string `json:"kills,omitzero"`
	Stops  string `json:"stops,omitzero"`
	Harms  Harm   `json:"harms,omitzero"`
	Detail string `json:"detail,omitzero"`
}

// Harm is what a fault excuses.
type Harm int

const (
	// Deafens: somebody who waits may not have heard the server, or not have been
	// heard, so that others may have been served first.
	Deafens Harm = 1 << iota
	// Stalls: locks may have been granted to nobody meanwhile.
	Stalls
)

// History is what all processes wrote.
type History struct {
	Events []Event // in the order of Call
	Faults []Fault // in the order of From
}
