package model

// callTTL is how long, in ms, a guarded call is remembered, so that it does not
// run a second time.
const callTTL = 60_000

// Guard runs the caller's own script, body, if the token still holds the lock,
// in one atomic step, and a call once at most.
//
// Keys: lock, call, then the caller's. Arguments: token, then the caller's. The
// reply: ran, absent, other or repeated; fence, ms left, 0, 0, 0, holder, and
// what body returned, unless that is nil.
func (s *Store) Guard(keys, args []string, body func(keys, args []string, fence string) (any, error)) (any, error) {
	if len(keys) < 2 || len(args) < 1 {
		return nil, refuse("ERR a guarded script takes at least 2 keys and 1 argument")
	}
	s.Begin()
	lock, call, token := keys[0], keys[1], args[0]
	value, held, err := s.Get(lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if !held {
		s.hit(GuardAbsent)
		return absent(), nil
	}
	if !owns(value, token) {
		s.hit(GuardOther)
		return other(value, s.PTTL(lock)), nil
	}
	if s.exists(call) {
		s.hit(GuardRepeated)
		return []any{"repeated", "0", int64(0), int64(0), int64(0), int64(0), ""}, nil
	}
	if err := s.setPX(call, "1", callTTL); err != nil {
		return nil, err
	}
	fence, left := fenceOf(value, token), s.PTTL(lock)
	result, err := body(keys[2:], args[1:], fence)
	if err != nil { // what it did until then stays done, and the call has run
		s.hit(GuardFailed)
		return nil, err
	}
	s.hit(GuardRan)
	rest := []any{left, int64(0), int64(0), int64(0), ""}
	if result != nil {
		rest = append(rest, result)
	}
	return s.withFence("ran", fence, rest...), nil
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
	call, fence := keys[1], args[1]
	ends, _, err := s.permit(keys[0], args[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if ends <= s.ms {
		if _, _, err := s.Get(call); err != nil { // read only to have a replica refuse
			return nil, err
		}
		s.hit(SemGuardAbsent)
		return absent(), nil
	}
	if s.exists(call) {
		s.hit(SemGuardRepeated)
		return []any{"repeated", "0", int64(0), int64(0), int64(0), int64(0), ""}, nil
	}
	if err := s.setPX(call, "1", callTTL); err != nil {
		return nil, err
	}
	left := ends - s.ms
	result, err := body(keys[2:], args[2:], fence)
	if err != nil {
		s.hit(SemGuardFailed)
		return nil, err
	}
	s.hit(SemGuardRan)
	reply := []any{"ran", fence, left, int64(0), int64(0), int64(0), ""}
	if result != nil {
		reply = append(reply, result)
	}
	return reply, nil
}
