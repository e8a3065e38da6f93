package model

import "strconv"

// Renew asks whether the token still holds the lock and raises what is left to
// at least ttl. A lease that an operator broke is held, and ends when it ends.
//
// Keys: lock. Arguments: token, ttl in ms (0: only ask). The reply: renewed,
// broken, absent or other; fence, ms left, 0, 0, 0, the lock's value.
func (s *Store) Renew(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 2 {
		return nil, refuse("ERR renew takes 1 key and 2 arguments")
	}
	s.Begin()
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	lock, token := keys[0], args[0]
	value, held, err := s.Get(lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if !held {
		s.hit(RenewAbsent)
		return absent(), nil
	}
	left, status := s.PTTL(lock), "renewed"
	switch {
	case !owns(value, token):
		s.hit(RenewOther)
		return other(value, left), nil
	case broken(value, token):
		s.hit(RenewBroken)
		status = "broken"
	case ttl == 0:
		s.hit(RenewAsked)
	case left < ttl:
		s.hit(RenewRaised)
		s.PExpire(lock, ttl)
		left = ttl
	default:
		s.hit(RenewKept)
	}
	return s.withFence(status, fenceOf(value, token), left, int64(0), int64(0), int64(0), value), nil
}

// absent and other are the answers to one that holds nothing.
func absent() any {
	return []any{"absent", "0", int64(-2), int64(0), int64(0), int64(0), ""}
}

func other(value string, left int64) any {
	return []any{"other", "0", left, int64(0), int64(0), int64(0), value}
}
