package scene

import (
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
)

// Names of the scenarios, by which figures are kept.
const (
	Cycle      = "cycle"
	Busy       = "busy"
	HandOver   = "handover"
	Crowd      = "crowd"
	Line       = "line"
	Idle       = "idle"
	Growth     = "growth"
	Held       = "held"
	HeldMany   = "held-many"
	CutOff     = "cut-off"
	Hung       = "hung"
	Distance   = "distance"
	Processes  = "processes"
	Semaphores = "semaphores"
	Readers    = "readers"
)

func anybody(locker.Kind) bool { return true }

// waits: by hand one would have to say how, which is what the libraries are about.
func waits(k locker.Kind) bool { return k.Waits }

// engines are all but the floors, which do not look again while they wait.
func engines(k locker.Kind) bool { return k.Waits && k.Family != locker.Scripts }

func renews(k locker.Kind) bool { return k.Renews }

func zamok(k locker.Kind) bool { return k.Family == locker.Zamok }

func ours(k locker.Kind) bool { return zamok(k) || k.Family == locker.Scripts }

func quorum(k locker.Kind) bool { return k.Quorum != nil }

// All returns the scenarios in the order in which they are played.
func All() []Scenario {
	return []Scenario{
		{Name: Cycle, About: "One goroutine locks and releases a name that nobody else wants.",
			Among: anybody, Together: true, Reps: 9, Seconds: 4.5, Limit: time.Minute, play: playCycle},
		{Name: Busy, About: "64 goroutines of a process do so, each with a name of its own.",
			Among: anybody, Together: true, Reps: 9, Seconds: 4.5, Limit: time.Minute, play: playBusy},
		{Name: HandOver, About: "16 clients want one lock and hold it for 5 ms.",
			Among: waits, Reps: 5, Seconds: 4.2, Limit: time.Minute, play: playHandOver},
		{Name: Crowd, About: "64 clients want one lock and hold it for 1 ms.",
			Among: waits, Reps: 3, Seconds: 2.7, Limit: time.Minute, play: playCrowd},
		{Name: Line, About: "64 goroutines with one client want one lock, and release it at once.",
			Among: waits, Reps: 5, Seconds: 1.7, Limit: time.Minute, play: playLine},
		{Name: Idle, About: "100 processes wait for a lock that nobody releases.",
			Among: engines, Xs: []int{100}, X: "waiting processes", Reps: 2, Seconds: 15, Limit: 2 * time.Minute, play: playIdle},
		{Name: Growth, About: "So many wait for one lock, in one process with 100 clients, first while it is held for long, then while each holds it for 1 ms.",
			Among: waits, Xs: []int{1, 10, 100, 1000, 10000}, X: "waiters", Reps: 2, Seconds: 6, Limit: 2 * time.Minute, play: playGrowth},
		{Name: Held, About: "One client holds 8,000 locks, and renews them.",
			Among: renews, Reps: 3, Seconds: 4.5, Limit: 2 * time.Minute, play: playHeld},
		{Name: HeldMany, About: "One client holds 100,000 locks for 1.5 TTLs.",
			Among: zamok, Reps: 1, Seconds: 38, Limit: 4 * time.Minute, play: playHeldMany},
		{Name: CutOff, About: "The holder is cut off from the server while another waits; the TTL is 5 s.",
			Among: renews, Together: true, Reps: 3, Seconds: 9, Limit: time.Minute, play: playCutOff},
		{Name: Hung, About: "One of three independent servers hangs.",
			Among: quorum, Together: true, Reps: 2, Seconds: 15, Limit: 2 * time.Minute, play: playHung},
		{Name: Distance, About: "The server is so many ms farther away, there and back. One goroutine locks and releases; then 4 clients want one lock and hold it for 5 ms.",
			Among: waits, Xs: []int{1, 5, 50}, X: "ms of added round trip", Reps: 2, Seconds: 3.7, Limit: time.Minute, play: playDistance},
		{Name: Processes, About: "So many processes with 16 goroutines each: first each goroutine has a name of its own, then all want one.",
			Among: waits, Xs: []int{1, 2, 3}, X: "processes", Reps: 2, Seconds: 2.9, Limit: time.Minute, play: playProcesses},
		{Name: Semaphores, About: "A permit is taken and given back; then 16 clients want one of 4 and keep it for 5 ms.",
			Among: ours, Together: true, Reps: 5, Seconds: 9, Limit: time.Minute, play: playSemaphores},
		{Name: Readers, About: "A reader comes and goes, and a writer; then 12 who read and 4 who write want one lock and hold it for 5 ms.",
			Among: ours, Together: true, Reps: 5, Seconds: 9, Limit: time.Minute, play: playReaders},
	}
}

// Plays says whether a locker is tried with that many: those who poll would only show
// that a thousand of them overload a server, at length.
func (s Scenario) Plays(k locker.Kind, x int) bool {
	return s.Among(k) && (s.Name != Growth || x <= 1000 || ours(k))
}
