package model

import "strconv"

// Release gives up whatever the token has: the lock, which goes to the next
// waiter, or a place in the queue.
//
// Keys: lock, queue, fence. Arguments: token, member (its entry in the queue;
// "": it has none), rest in ms ("0": none). The reply: released, handed, absent
// or other; fence, ms left, 0, entries removed from the queue, 0, holder.
func (s *Store) Release(keys, args []string) (any, error) {
	if len(keys) != 3 || len(args) != 3 {
		return nil, refuse("ERR release takes 3 keys and 3 arguments")
	}
	s.Begin()
	lock, queue := keys[0], keys[1]
	value, held, err := s.Get(lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if held && owns(value, args[0]) {
		return s.releaseMine(keys, args[0], value, args[2])
	}
	removed, err := s.leaveQueue(lock, queue, args[1], held)
	if err != nil {
		return nil, err
	}
	if held {
		s.hit(ReleaseOther)
		return []any{"other", "0", s.PTTL(lock), int64(0), removed, int64(0), value}, nil
	}
	return s.releaseAbsent(keys, removed)
}

// releaseMine is release by the holder.
func (s *Store) releaseMine(keys []string, token, value, rest string) (any, error) {
	lock, queue, fence := keys[0], keys[1], fenceOf(value, token)
	if rest != "0" && broken(value, token) {
		s.hit(ReleaseBroken) // an operator wants it free
		rest = "0"
	}
	if rest != "0" {
		return s.rest(lock, queue, token, fence, rest)
	}
	head, waits, err := s.zpopmin(queue)
	switch {
	case err != nil:
		s.hit(QueueWrongType)
		return nil, err
	case !waits:
		s.hit(ReleaseAlone)
		s.Del(lock)
		return s.withFence("released", fence, int64(0), int64(0), int64(0), int64(0), ""), nil
	}
	g, err := s.handOver(lock, queue, keys[2], noToken, head)
	if err != nil {
		return nil, err
	}
	if g.to == toOther {
		s.hit(ReleaseHands)
		return s.withFence("handed", fence, int64(0), int64(0), int64(0), int64(0), g.value), nil
	}
	s.hit(ReleaseNobodyLeft) // or more dead than one call may drop
	s.Del(lock)
	return s.withFence("released", fence, int64(0), int64(0), int64(0), int64(0), ""), nil
}

// rest leaves the key where it is, owned by nobody: no token begins so.
func (s *Store) rest(lock, queue, token, fence, rest string) (any, error) {
	if fence == "" {
		s.hit(ReleaseRestNoFence)
		return nil, refuse("ERR attempt to concatenate a nil value")
	}
	ms, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	if err := s.setPX(lock, "z1-rest"+token[min(2, len(token)):]+":"+fence, ms); err != nil {
		return nil, err
	}
	s.hit(ReleaseRests)
	if err := s.tellNext(lock, queue, rest); err != nil {
		return nil, err
	}
	return []any{"released", fence, ms, int64(0), int64(0), int64(0), ""}, nil
}

// leaveQueue takes the caller's entry out of the queue. If it was the first, the
// one behind it is told that it is the first now.
func (s *Store) leaveQueue(lock, queue, member string, held bool) (removed int64, err error) {
	if member == "" {
		return 0, nil
	}
	all, err := s.ZRange(queue)
	if err != nil {
		s.hit(QueueWrongType)
		return 0, err
	}
	first := len(all) > 0 && all[0].Member == member
	if ok, err := s.ZRem(queue, member); err != nil || !ok {
		s.hit(ReleaseNotQueued)
		return 0, err
	}
	s.hit(ReleaseLeavesQueue)
	if first && held {
		err = s.tellNext(lock, queue, strconv.FormatInt(s.PTTL(lock), 10))
	}
	return 1, err
}

// releaseAbsent is release when nobody holds the lock. Somebody may queue for
// it, and then it is passed on: a lock that is free is not left to a queue.
func (s *Store) releaseAbsent(keys []string, removed int64) (any, error) {
	g := given{to: toNobody}
	if s.exists(keys[1]) {
		var err error
		if g, err = s.handOver(keys[0], keys[1], keys[2], noToken, ""); err != nil {
			return nil, err
		}
		if g.to == toOther {
			s.hit(ReleaseAbsentHandsOver)
		} else {
			s.hit(ReleaseAbsentNobody)
		}
	} else {
		s.hit(ReleaseAbsent)
	}
	return []any{"absent", "0", int64(-2), int64(0), removed, int64(0), g.value}, nil
}
