package model

import "strconv"

// Inspect reads a lock, its last fence and the first of those who wait. Nothing
// is changed.
//
// Keys: lock, queue, fence, readers (not touched), broken. Argument: how many waiters at most. The
// reply: the lock's value ("": free), fence, ms left, time, waiters in all, what
// was last broken ("": nothing), and for each waiter member, ticket, ears.
func (s *Store) Inspect(keys, args []string) (any, error) {
	if len(keys) != 5 || len(args) != 1 {
		return nil, refuse("ERR inspect takes 5 keys and 1 argument")
	}
	s.Begin()
	most, err := strconv.Atoi(args[0])
	if err != nil || most < 0 {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	value, held, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	last, ok, err := s.Get(keys[2])
	if err != nil {
		s.hit(FenceWrongType)
		return nil, err
	}
	if !ok {
		last = "0"
	}
	broken, _, err := s.Get(keys[4])
	if err != nil {
		s.hit(BrokenWrongType)
		return nil, err
	}
	waiters, err := s.ZRange(keys[1])
	if err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	if held {
		s.hit(InspectHeld)
	} else {
		s.hit(InspectFree)
	}
	reply := []any{value, last, s.PTTL(keys[0]), s.us, int64(len(waiters)), broken}
	return s.withWaiters(reply, waiters, most), nil
}

// withWaiters adds member, ticket and ears of each of the first who wait.
func (s *Store) withWaiters(reply []any, waiters []Scored, most int) any {
	for _, w := range waiters[:min(most, len(waiters))] {
		reply = append(reply, w.Member, whole(w.Score), s.ears(w.Member))
	}
	return reply
}

// ears says how many listen for the waiter: 1 for one of whom that cannot be
// known.
func (s *Store) ears(member string) int64 {
	w, ok := parseWaiter(member)
	switch {
	case !ok:
		s.hit(InspectGarbage)
		return 1
	case w.inbox == "-":
		s.hit(InspectPoller)
		return 1
	}
	s.hit(InspectListener)
	return s.env.Listeners(w.inbox)
}
