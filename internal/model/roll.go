package model

import "strconv"

// Roll reads those who have a permit, or read, and the first of those who wait.
// Nothing is changed.
//
// Keys: semaphore or readers, queue, fence, limit, marks. Arguments: how many holders
// at most, how many waiters. The reply: limit (0: not set), fence, ms left, time,
// waiters in all, holders in all, holders that follow; then token, end in ms and mark
// ("": none) of each, then member, ticket, ears of each waiter.
func (s *Store) Roll(keys, args []string) (any, error) {
	if len(keys) != 5 || len(args) != 2 {
		return nil, refuse("ERR roll takes 5 keys and 2 arguments")
	}
	s.Begin()
	most, err1 := strconv.Atoi(args[0])
	mostWaiters, err2 := strconv.Atoi(args[1])
	if err1 != nil || err2 != nil || most < 0 || mostWaiters < 0 {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	limit, err := s.limit(keys[3], "0")
	if err != nil {
		return nil, err
	}
	last, ok, err := s.Get(keys[2])
	switch {
	case err != nil:
		s.hit(FenceWrongType)
		return nil, err
	case !ok:
		last = "0"
	}
	members, err := s.readersNow(keys[0])
	if err != nil {
		return nil, err
	}
	waiters, err := s.ZRange(keys[1])
	if err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	shown := members[:min(most, len(members))]
	reply := []any{strconv.FormatInt(limit, 10), last, s.PTTL(keys[0]), s.us, int64(len(waiters)), int64(len(members)), int64(len(shown))}
	for _, m := range shown {
		note, marked, err := s.HGet(keys[4], m.Member)
		switch {
		case err != nil:
			s.hit(MarksWrongType)
			return nil, err
		case marked:
			s.hit(RollMarked)
			note = markOf(m.Member, note)
		default:
			s.hit(RollUnmarked)
		}
		reply = append(reply, m.Member, int64(m.Score), note)
	}
	return s.withWaiters(reply, waiters, mostWaiters), nil
}
