package model

import (
	"cmp"
	"math"
	"strconv"
)

// acquisition is one run of acquire.
type acquisition struct {
	*Store
	names
	token, ttlText string
	ttl            int64
	inbox          string // "": does not wait; "-": waits and polls
	ticket         float64
	member         string // its entry in the queue; "" until it needs one
	mode           string
	stood          int64 // 1: it stood in the queue before this run; 2: and others have the lock already
}

// Acquire takes the lock when it is free, or joins the queue of those who wait
// for it.
//
// Keys: lock, queue, fence, readers, and with quarantine node. Arguments: token, ttl
// in ms, inbox, ticket (0: none yet), mode (w; W: with a block of fences), and with
// quarantine terms. The reply: granted, waits, held or
// again; fence, ms left, time, position in the queue (granted: 1 if it stood there
// until now, so that nobody can have released the lock), ears (how many listen to
// the inbox), holder (of readers the one whose lease ends first), ticket; when
// readers have the lock also 0, how many.
func (s *Store) Acquire(keys, args []string) (any, error) {
	a, err := s.acquisition("acquire", keys, args)
	if err != nil {
		return nil, err
	}
	if a.closed == 0 && !s.exists(a.lock) && !s.exists(a.queue) {
		s.hit(AcquireFree)
		return a.take()
	}
	return a.contend()
}

// acquisition begins acquire or read_acquire.
func (s *Store) acquisition(name string, keys, args []string) (a acquisition, err error) {
	node, terms, ok := quarantined(keys, args, 4, 5)
	if !ok {
		return a, refuse("ERR " + name + " takes 4 keys and 5 arguments")
	}
	s.Begin()
	ttl, err1 := strconv.ParseInt(args[1], 10, 64)
	ticket, err2 := strconv.ParseFloat(args[3], 64)
	if err1 != nil || err2 != nil {
		return a, refuse("ERR value is not an integer or out of range")
	}
	a = acquisition{Store: s, names: namesOf(keys), token: args[0], ttlText: args[1], ttl: ttl,
		inbox: args[2], ticket: ticket, mode: args[4]}
	return a, a.enter(node, terms)
}

// enter asks whether the caller may be granted anything.
func (a *acquisition) enter(node, terms []string) error {
	left, odds, err := a.quarantine(node, terms)
	a.closed = left
	return cmp.Or(odds, err) // one of them at most
}

// look reads lock and queue, whose types are so checked before anything is
// written, and returns the last ticket too. A fence of another type is found when
// it is needed, and costs nobody his ticket.
func (a *acquisition) look() (value string, held bool, tail float64, err error) {
	value, held, err = a.Get(a.lock)
	if err != nil {
		a.hit(LockWrongType)
		return "", false, 0, err
	}
	waiters, err := a.ZRange(a.queue)
	if err != nil {
		a.hit(QueueWrongType)
		return "", false, 0, err
	}
	if len(waiters) > 0 {
		tail = waiters[len(waiters)-1].Score
	}
	return value, held, tail, nil
}

// contend is acquire when the lock is held or somebody queues for it.
func (a *acquisition) contend() (any, error) {
	value, held, tail, err := a.look()
	if err != nil {
		return nil, err
	}
	if held && owns(value, a.token) {
		return a.again(value), nil
	}
	if !held {
		a.hit(AcquireFoundFree)
	}
	ears := a.enqueue(tail)
	if held {
		a.hit(AcquireHeldByOther)
		return a.refused(value, a.PTTL(a.lock), ears)
	}
	g, err := a.handOver(a.names, a.token, "", 0)
	if err != nil {
		return nil, err
	}
	switch g.to {
	case more:
		a.hit(AcquireAgain)
		return a.goOn(), nil
	case toOther, closed:
		a.hit(AcquireGaveToOther)
		return a.refused(g.value, g.ms, ears)
	}
	a.hit(AcquireFirst)
	reply, err := a.take()
	if err != nil {
		return nil, err
	}
	return reply, a.tellNext(a.names, a.ttlText)
}

// goOn asks the caller to come again: too many dead waiters stand before it.
func (a *acquisition) goOn() any {
	return []any{"again", "0", int64(0), a.us, int64(0), int64(0), "", whole(a.ticket)}
}

// take makes the caller the holder of a lock that is free.
func (a *acquisition) take() (any, error) {
	value, fence, err := a.nextFence(a.fence, a.token)
	if err != nil {
		return nil, err
	}
	a.reserve(a.fence, a.mode, fence)
	if err := a.setPX(a.lock, value, a.ttl); err != nil {
		return nil, err
	}
	return []any{"granted", fence, a.ttl, a.us, a.stood, int64(0), "", "0"}, nil
}

// again answers one that holds the lock already: its reply was lost, or a
// hand-over made it the holder and it does not know. What is left is raised to
// the ttl, also when there was no limit at all (-1), and never shortened; but
// not when an operator broke the lease.
func (a *acquisition) again(value string) any {
	left := a.PTTL(a.lock)
	switch {
	case broken(value, a.token):
		a.hit(AcquireMineBroken)
	case left < a.ttl:
		a.hit(AcquireMineRaised)
		a.PExpire(a.lock, a.ttl)
		left = a.ttl
	default:
		a.hit(AcquireMineKept)
	}
	return a.withFence("granted", fenceOf(value, a.token), left, a.us, int64(grantedBefore), int64(0), "", "0")
}

// enqueue puts the caller in the queue, if it waits, and returns how many listen
// to its inbox. One that stands there already keeps its place.
func (a *acquisition) enqueue(tail float64) (ears int64) {
	switch a.inbox {
	case "":
		a.hit(AcquireTry)
		return 0
	case "-":
		a.hit(AcquirePoll)
	default:
		a.hit(AcquireListen)
		ears = a.env.Listeners(a.inbox)
	}
	switch {
	case a.ticket != 0:
		a.hit(AcquireOldTicket)
	case tail+1 > float64(a.us): // the clock went back: tickets grow all the same
		a.hit(AcquireTicketBehindTail)
		a.ticket = tail + 1
	default:
		a.hit(AcquireNewTicket)
		a.ticket = float64(a.us)
	}
	a.ticket = math.RoundToEven(a.ticket) // it is sent as a whole number
	a.member = a.mode + "|" + a.token + "|" + a.ttlText + "|" + a.inbox
	if added, _ := a.ZAdd(a.queue, a.member, a.ticket); !added { // the type was checked
		a.hit(AcquireQueuedAlready)
		a.stood = 1
		a.ticket = a.zscore(a.queue, a.member)
	}
	a.PExpire(a.queue, queueTTL)
	return ears
}

// queueTTL is how long a queue outlives the last that joined or polled, in ms.
// No waiter is silent for more than a third of it.
const queueTTL = 900_000

// refused answers one that did not get the lock. Of readers it names the one whose
// lease ends first, and says how many there are.
func (a *acquisition) refused(value string, left, ears int64) (any, error) {
	holder, rest := value, []any(nil)
	if reads(value) {
		readers, err := a.readersNow(a.readers)
		if err != nil {
			return nil, err
		}
		holder, rest = "", []any{int64(0), int64(len(readers))}
		if len(readers) > 0 {
			a.hit(RefusedByReaders)
			holder = readers[0].Member
		} else {
			a.hit(RefusedByNobody)
		}
	}
	if a.inbox == "" {
		a.hit(AcquireTryRefused)
		return append([]any{"held", "0", left, a.us, int64(0), int64(0), holder, "0"}, rest...), nil
	}
	a.hit(AcquireWaits)
	position := a.zrank(a.queue, a.member) + 1
	return append([]any{"waits", a.stoodText(), left, a.us, position, ears, holder, whole(a.ticket)}, rest...), nil
}

// grantedBefore is the position of one that has what it asks for already.
const grantedBefore = 2

// stoodText says to one that waits whether it stood in the queue already.
func (a *acquisition) stoodText() string { return strconv.FormatInt(min(a.stood, 1), 10) }

// withFence is a reply whose fence was read out of the lock's value. If there
// was none the reply ends before it: see the package's documentation.
func (s *Store) withFence(status, fence string, rest ...any) any {
	if fence == "" {
		s.hit(NoFence)
		return []any{status}
	}
	return append(append(make([]any, 0, 2+len(rest)), status, fence), rest...)
}

// whole prints a number as C does with %.0f.
func whole(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}
