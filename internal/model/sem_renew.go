package model

import "strconv"

// SemRenew asks whether the token still has a permit and raises what is left of it
// to at least ttl.
//
// Keys: semaphore, semaphore again, marks. Arguments: token, ttl in ms (0: only ask).
// The reply: renewed, broken or absent; 0, ms left, 0, 0, 0, "" or the mark.
func (s *Store) SemRenew(keys, args []string) (any, error) {
	if len(keys) != 3 || len(args) != 2 {
		return nil, refuse("ERR sem_renew takes 3 keys and 2 arguments")
	}
	s.Begin()
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	if _, err := s.taken(keys[0]); err != nil {
		return nil, err
	}
	return s.renewMember(keys[0], keys[1], keys[2], args[0], ttl)
}
