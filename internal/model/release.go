package model

import "strconv"

// Release gives up whatever the token has: the lock, which goes to the next
// waiter, a reader's share of it, or a place in the queue.
//
// Keys: lock, queue, fence, readers, and with quarantine node. Arguments: token, member
// (its entry in the queue; "": it has none), rest in ms ("0": none; a reader has none),
// and with quarantine terms. The reply:
// released, handed, absent or other; fence (of a reader 0), ms left, 0, entries
// removed from the queue, 0, holder.
func (s *Store) Release(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 3)
	if !ok {
		return nil, refuse("ERR release takes 4 keys and 3 arguments")
	}
	s.Begin()
	k, token := namesOf(keys), args[0]
	value, held, err := s.Get(k.lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if k.closed, _, err = s.quarantine(node, terms); err != nil {
		return nil, err
	}
	if held && owns(value, token) {
		return s.releaseMine(k, token, value, args[2])
	}
	if held && reads(value) {
		if reply, done, err := s.releaseReader(k, token); done || err != nil {
			return reply, err
		}
	}
	removed, err := s.leaveQueue(k, args[1], value, held)
	if err != nil {
		return nil, err
	}
	if held {
		s.hit(ReleaseOther)
		return []any{"other", "0", s.PTTL(k.lock), int64(0), removed, int64(0), value}, nil
	}
	return s.releaseAbsent(k, removed)
}

// releaseReader is release by a reader; done is false when the token reads not.
// The last reader frees the lock, and with the others it ends no later than they.
func (s *Store) releaseReader(k names, token string) (reply any, done bool, err error) {
	had, err := s.ZRem(k.readers, token)
	if err != nil {
		s.hit(ReadersWrongType)
		return nil, false, err
	}
	if !had {
		return nil, false, nil
	}
	if left := s.lastEnd(k.readers) - s.ms; left > 0 {
		s.hit(ReleaseReader)
		s.PExpire(k.lock, left)
		s.PExpire(k.readers, left)
		return released("released", "0", ""), true, nil
	}
	s.hit(ReleaseLastReader)
	reply, err = s.releaseFree(k, "0")
	return reply, true, err
}

// releaseMine is release by the holder.
func (s *Store) releaseMine(k names, token, value, rest string) (any, error) {
	fence := fenceOrZero(value, token)
	if rest != "0" && broken(value, token) {
		s.hit(ReleaseBroken) // an operator wants it free
		rest = "0"
	}
	if rest != "0" {
		return s.rest(k, token, fence, rest)
	}
	return s.releaseFree(k, fence)
}

// releaseFree frees the lock for the next waiter.
func (s *Store) releaseFree(k names, fence string) (any, error) {
	head, waits, err := "", true, error(nil)
	if k.closed == 0 {
		head, waits, err = s.zpopmin(k.queue)
	}
	switch {
	case err != nil:
		s.hit(QueueWrongType)
		return nil, err
	case !waits:
		s.hit(ReleaseAlone)
		s.Del(k.lock)
		return released("released", fence, ""), nil
	}
	g, err := s.pass(k, head)
	if err != nil {
		return nil, err
	}
	if g.to == toOther {
		s.hit(ReleaseHands)
		return released("handed", fence, g.value), nil
	}
	s.hit(ReleaseNobodyLeft) // or more dead than one call may drop
	s.Del(k.lock)
	return released("released", fence, ""), nil
}

// pass hands over a lock that nobody holds.
func (s *Store) pass(k names, head string) (given, error) {
	g, err := s.handOver(k, noToken, head, 0)
	if g.to == closed {
		g.value = ""
	}
	return g, err
}

func released(status, fence, holder string) any {
	return []any{status, fence, int64(0), int64(0), int64(0), int64(0), holder}
}

// rest leaves the key where it is, owned by nobody: no token begins so.
func (s *Store) rest(k names, token, fence, rest string) (any, error) {
	ms, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	if err := s.setPX(k.lock, "z1-rest"+token[min(2, len(token)):]+":"+fence, ms); err != nil {
		return nil, err
	}
	s.hit(ReleaseRests)
	if err := s.tellNext(k, rest); err != nil {
		return nil, err
	}
	return []any{"released", fence, ms, int64(0), int64(0), int64(0), ""}, nil
}

// leaveQueue takes the caller's entry out of the queue. If it was the first, the
// one behind it is told that it is the first now, or let in if both it and those
// who have the lock read.
func (s *Store) leaveQueue(k names, member, value string, held bool) (removed int64, err error) {
	if member == "" {
		return 0, nil
	}
	all, err := s.ZRange(k.queue)
	if err != nil {
		s.hit(QueueWrongType)
		return 0, err
	}
	first := len(all) > 0 && all[0].Member == member
	if ok, err := s.ZRem(k.queue, member); err != nil || !ok {
		s.hit(ReleaseNotQueued)
		return 0, err
	}
	s.hit(ReleaseLeavesQueue)
	if !first || !held {
		return 1, nil
	}
	if reads(value) {
		if a, err := s.admit(k, noToken, 0, false, nil); err != nil || a.told {
			return 1, err
		}
	}
	return 1, s.tellNext(k, strconv.FormatInt(s.PTTL(k.lock), 10))
}

// releaseAbsent is release when nobody holds the lock. Somebody may queue for
// it, and then it is passed on: a lock that is free is not left to a queue.
func (s *Store) releaseAbsent(k names, removed int64) (any, error) {
	g := given{to: toNobody}
	if s.exists(k.queue) {
		var err error
		if g, err = s.pass(k, ""); err != nil {
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

// LetGo gives up the lock by its own key, and leaves the queue as it is.
//
// Keys: lock. Arguments: token. The reply: released, absent or other; fence, ms left,
// 0, 0, 0, holder.
func (s *Store) LetGo(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 1 {
		return nil, refuse("ERR let_go takes 1 key and 1 argument")
	}
	s.Begin()
	lock, token := keys[0], args[0]
	value, held, err := s.Get(lock)
	switch {
	case err != nil:
		s.hit(LockWrongType)
		return nil, err
	case !held:
		s.hit(LetGoAbsent)
		return absent(), nil
	case !owns(value, token):
		s.hit(LetGoOther)
		return other(value, s.PTTL(lock)), nil
	}
	s.hit(LetGoMine)
	s.Del(lock)
	return released("released", fenceOrZero(value, token), ""), nil
}
