package model

import (
	"math"
	"strconv"
)

// semAcquisition is one run of sem_acquire: acquire, with permits for the lock.
// Its lock is the semaphore.
type semAcquisition struct {
	acquisition
	limit, taken int64
}

// SemAcquire takes a permit of a semaphore when one is free, or joins the queue of
// those who wait for one.
//
// Keys: semaphore, queue, fence, limit, and with quarantine node. Arguments: token, ttl
// in ms, inbox, ticket (0: none yet), mode, permits (unless limit says how many), and
// with quarantine terms. The reply: granted,
// waits, held or again; fence, ms left (refused: until the first permit ends), time,
// position in the queue, ears, the token whose permit ends first, ticket, permits,
// taken.
func (s *Store) SemAcquire(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 6)
	if !ok {
		return nil, refuse("ERR sem_acquire takes 4 keys and 6 arguments")
	}
	s.Begin()
	ttl, err1 := strconv.ParseInt(args[1], 10, 64)
	ticket, err2 := strconv.ParseFloat(args[3], 64)
	if err1 != nil || err2 != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	limit, err := s.limit(keys[3], args[5])
	if err != nil {
		return nil, err
	}
	waiters, err := s.ZRange(keys[1])
	if err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	taken, err := s.taken(keys[0])
	if err != nil {
		return nil, err
	}
	a := semAcquisition{limit: limit, taken: taken, acquisition: acquisition{
		Store: s, names: names{lock: keys[0], queue: keys[1], fence: keys[2]}, token: args[0], ttlText: args[1], ttl: ttl,
		inbox: args[2], ticket: ticket, mode: args[4]}}
	if err := a.enter(node, terms); err != nil {
		return nil, err
	}
	return a.run(waiters)
}

// run is sem_acquire when the types of semaphore, queue and limit have been checked.
func (a *semAcquisition) run(waiters []Scored) (any, error) {
	ends, mine, _ := a.permit(a.lock, a.token) // the type was checked
	switch {
	case mine:
		return a.again(ends)
	case a.closed == 0 && a.taken < a.limit && len(waiters) == 0:
		a.hit(SemAcquireFree)
		return a.take()
	}
	tail := 0.0
	if len(waiters) > 0 {
		tail = waiters[len(waiters)-1].Score
	}
	return a.contend(tail)
}

// again answers one that has a permit already: a reply was lost, or a hand-over
// gave it. What is left is raised to the ttl, and never shortened.
func (a *semAcquisition) again(ends int64) (any, error) {
	_, fence, err := a.nextFence(a.fence, a.token)
	if err != nil {
		return nil, err
	}
	age := max(0, a.ms-ends+min(a.ttl, 2000))
	if ends < a.ms+a.ttl {
		a.hit(SemAcquireMineRaised)
		ends = a.ms + a.ttl
	} else {
		a.hit(SemAcquireMineKept)
	}
	_ = a.zput(a.lock, a.token, float64(ends)) // the type was checked
	a.keep(a.lock)
	return []any{"granted", fence, ends - a.ms, a.us, int64(grantedBefore), age, "", "0", a.limit, a.taken}, nil
}

// take gives the caller a permit that is free.
func (a *semAcquisition) take() (any, error) {
	_, fence, err := a.nextFence(a.fence, a.token)
	if err != nil {
		return nil, err
	}
	_ = a.zput(a.lock, a.token, float64(a.ms+a.ttl)) // the type was checked
	a.keep(a.lock)
	a.taken++
	return a.granted(fence, a.ttl), nil
}

// contend is sem_acquire when all permits are taken, or somebody queues.
func (a *semAcquisition) contend(tail float64) (any, error) {
	ears := a.enqueue(tail)
	p := permits{Store: a.Store, names: a.names}
	g, err := p.grant(a.token, a.ttl, a.limit-a.taken)
	if err != nil {
		return nil, err
	}
	a.taken += g.given
	if g.mine == "" && g.end == usedUp { // whoever only tries is not in the queue
		a.hit(SemAcquireBehindNobody)
		reply, err := a.take()
		if err != nil {
			return nil, err
		}
		return reply, p.tell()
	}
	if g.given > 0 {
		if err := p.tell(); err != nil {
			return nil, err
		}
	}
	if g.mine != "" {
		a.hit(SemAcquireFirst)
		return a.granted(g.mine, a.ttl), nil
	}
	return a.refused(g.end, ears), nil
}

func (a *semAcquisition) granted(fence string, left int64) any {
	return []any{"granted", fence, left, a.us, a.stood, int64(0), "", "0", a.limit, a.taken}
}

// refused answers one that got no permit. It is told whose permit ends first: there
// is none when there are no permits at all.
func (a *semAcquisition) refused(end ending, ears int64) any {
	first, left := "", int64(0)
	if all, _ := a.ZRange(a.lock); len(all) > 0 {
		first, left = all[0].Member, int64(all[0].Score)-a.ms
	} else {
		a.hit(SemAcquireNoPermits)
	}
	if a.closed > 0 && a.taken < a.limit {
		a.hit(SemClosed)
		first, left = closedHolder, a.closed
	}
	switch {
	case end == stopped:
		a.hit(SemAcquireAgain)
		return []any{"again", "0", int64(0), a.us, int64(0), int64(0), "", whole(a.ticket), a.limit, a.taken}
	case a.inbox == "":
		a.hit(SemAcquireRefused)
		return []any{"held", "0", left, a.us, int64(0), int64(0), first, "0", a.limit, a.taken}
	}
	a.hit(SemAcquireWaits)
	position := a.zrank(a.queue, a.member) + 1
	return []any{"waits", a.stoodText(), left, a.us, position, ears, first, whole(a.ticket), a.limit, a.taken}
}

// limit returns how many permits there are: what was set for all, or what the
// caller says. What is no number was set by nobody.
func (s *Store) limit(key, own string) (int64, error) {
	value, ok, err := s.Get(key)
	if err != nil {
		s.hit(LimitWrongType)
		return 0, err
	}
	n, isNumber := digits(value)
	switch {
	case isNumber && value[0] != '0':
		s.hit(LimitOfAll)
		return n, nil
	case ok:
		s.hit(LimitGarbage)
	default:
		s.hit(LimitOfCaller)
	}
	if n, err = strconv.ParseInt(own, 10, 64); err != nil {
		return 0, refuse("ERR value is not an integer or out of range")
	}
	return n, nil
}

// taken drops the permits that have ended, and returns how many are left.
func (s *Store) taken(key string) (int64, error) {
	ended, err := s.zremUpTo(key, float64(s.ms))
	if err != nil {
		s.hit(LockWrongType)
		return 0, err
	}
	if ended > 0 {
		s.hit(PermitsEnded)
	}
	all, err := s.ZRange(key)
	return int64(len(all)), err
}

// permit returns when the token's permit ends, in ms of the server's clock.
func (s *Store) permit(key, token string) (ends int64, ok bool, err error) {
	e, ok, err := s.typed(key, ZSet)
	if err != nil || !ok {
		return 0, false, err
	}
	score, ok := e.set.scores[token]
	return int64(math.Trunc(score)), ok, nil
}
