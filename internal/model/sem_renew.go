package model

import "strconv"

// SemRenew asks whether the token still has a permit and raises what is left of it
// to at least ttl.
//
// Keys: semaphore. Arguments: token, ttl in ms (0: only ask). The reply: renewed or
// absent; 0, ms left, 0, 0, 0, "".
func (s *Store) SemRenew(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 2 {
		return nil, refuse("ERR sem_renew takes 1 key and 2 arguments")
	}
	s.Begin()
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	key, token := keys[0], args[0]
	if _, err := s.taken(key); err != nil {
		return nil, err
	}
	ends, has, _ := s.permit(key, token) // the type was checked
	switch {
	case !has:
		s.hit(SemRenewAbsent)
		return absent(), nil
	case ttl == 0:
		s.hit(SemRenewAsked)
	case ends < s.ms+ttl:
		s.hit(SemRenewRaised)
		ends = s.ms + ttl
		_ = s.zput(key, token, float64(ends)) // the type was checked
		s.keep(key, ttl)
	default:
		s.hit(SemRenewKept)
	}
	return []any{"renewed", "0", ends - s.ms, int64(0), int64(0), int64(0), ""}, nil
}
