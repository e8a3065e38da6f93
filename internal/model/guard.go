package model

// callTTL is how long, in ms, a guarded call is remembered, so that it does not
// run a second time.
const callTTL = 60_000

// Guard runs the caller's own script, body, if the token still holds the lock,
// or reads under it, in one atomic step, and a call once at most.
//
// Keys: lock, call, readers, then the caller's. Arguments: token, fence of the
// lease, then the caller's. The reply: ran, absent, other or repeated; fence, ms
// left, 0, 0, 0, holder, and what body returned, unless that is nil.
func (s *Store) Guard(keys, args []string, body func(keys, args []string, fence string) (any, error)) (any, error) {
	if len(keys) < 3 || len(args) < 2 {
		return nil, refuse("ERR a guarded script takes at least 3 keys and 2 arguments")
	}
	s.Begin()
	lock, token := keys[0], args[0]
	value, held, err := s.Get(lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if !held {
		s.hit(GuardAbsent)
		return absent(), nil
	}
	left := s.PTTL(lock)
	switch {
	case owns(value, token):
	case reads(value):
		end, _, err := s.permit(keys[2], token)
		if err != nil {
			s.hit(ReadersWrongType)
			return nil, err
		}
		if end > s.ms {
			s.hit(GuardReads)
			left = end - s.ms
			break
		}
		fallthrough
	default:
		s.hit(GuardOther)
		return other(value, left), nil
	}
	return s.runOnce(keys[1], args[1], left, func() (any, error) { return body(keys[3:], args[2:], args[1]) })
}

// runOnce is what a guard does when the token holds.
func (s *Store) runOnce(call, fence string, left int64, body func() (any, error)) (any, error) {
	if s.exists(call) {
		s.hit(GuardRepeated)
		return []any{"repeated", "0", int64(0), int64(0), int64(0), int64(0), ""}, nil
	}
	if err := s.setPX(call, "1", callTTL); err != nil {
		return nil, err
	}
	result, err := body()
	if err != nil { // what it did until then stays done, and the call has run
		s.hit(GuardFailed)
		return nil, err
	}
	s.hit(GuardRan)
	reply := []any{"ran", fence, left, int64(0), int64(0), int64(0), ""}
	if result != nil {
		reply = append(reply, result)
	}
	return reply, nil
}

// SemGuard is Guard for one that has a permit of a semaphore.
//
// Keys: semaphore, call, then the caller's. Arguments: token, fence of the permit,
// then the caller's. The reply: ran, absent or repeated; fence, ms left, 0, 0, 0, "",
// and what body returned, unless that is nil.
func (s *Store) SemGuard(keys, args []string, body func(keys, args []string, fence string) (any, error)) (any, error) {
	if len(keys) < 2 || len(args) < 2 {
		return nil, refuse("ERR a guarded script takes at least 2 keys and 2 arguments")
	}
	s.Begin()
	ends, _, err := s.permit(keys[0], args[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if ends <= s.ms {
		if _, _, err := s.Get(keys[1]); err != nil { // read only to have a replica refuse
			return nil, err
		}
		s.hit(SemGuardAbsent)
		return absent(), nil
	}
	s.hit(SemGuardHas)
	return s.runOnce(keys[1], args[1], ends-s.ms, func() (any, error) { return body(keys[2:], args[2:], args[1]) })
}
