package model

// SemRelease gives up whatever the token has: a permit, which goes to the next
// waiter, or a place in the queue.
//
// Keys: semaphore, queue, fence, limit, and with quarantine node. Arguments: token,
// member (its entry in the queue; "": it has none), permits (unless limit says how
// many), and with quarantine terms. The reply:
// released, handed or absent; 0, 0, 0, entries removed from the queue, 0, "".
func (s *Store) SemRelease(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 3)
	if !ok {
		return nil, refuse("ERR sem_release takes 4 keys and 3 arguments")
	}
	s.Begin()
	limit, err := s.limit(keys[3], args[2])
	if err != nil {
		return nil, err
	}
	if _, err := s.taken(keys[0]); err != nil {
		return nil, err
	}
	shut, _, err := s.quarantine(node, terms)
	if err != nil {
		return nil, err
	}
	waiters, err := s.ZRange(keys[1])
	if err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	had, _ := s.ZRem(keys[0], args[0]) // the type was checked
	if len(waiters) == 0 {
		s.hit(SemReleaseAlone)
		return semReleased(had, 0, 0), nil
	}
	removed := s.semLeaveQueue(keys[1], args[1])
	taken, _ := s.ZRange(keys[0])
	p := permits{Store: s, names: names{lock: keys[0], queue: keys[1], fence: keys[2], closed: shut}}
	g, err := p.grant(noToken, 0, limit-int64(len(taken)))
	if err != nil {
		return nil, err
	}
	if g.given > 0 || removed > 0 {
		if err := p.tell(); err != nil {
			return nil, err
		}
	}
	s.countRelease(had, g.given)
	return semReleased(had, removed, g.given), nil
}

func (s *Store) countRelease(had bool, given int64) {
	switch {
	case given == 0:
		s.hit(SemReleaseHandsNothing)
	case had:
		s.hit(SemReleaseHands)
	default:
		s.hit(SemReleaseAbsentHands)
	}
}

func semReleased(had bool, removed, given int64) any {
	status := "absent"
	if had {
		status = "released"
		if given > 0 {
			status = "handed"
		}
	}
	return []any{status, "0", int64(0), int64(0), removed, int64(0), ""}
}

// semLeaveQueue takes the caller's entry out of the queue, whose type was checked.
func (s *Store) semLeaveQueue(queue, member string) (removed int64) {
	if member == "" {
		return 0
	}
	if ok, _ := s.ZRem(queue, member); !ok {
		s.hit(SemReleaseNotQueued)
		return 0
	}
	s.hit(SemReleaseLeavesQueue)
	return 1
}
