package model

import "strconv"

// Renew asks whether the token still holds the lock, or reads under it, and raises
// what is left to at least ttl. A lease that an operator broke is held, and ends
// when it ends.
//
// Keys: lock; of a reader also readers, marks. Arguments: token, ttl in ms (0: only
// ask). The reply: renewed, broken, absent or other; fence (of a reader 0), ms left,
// 0, 0, 0, the lock's value (of a reader "", or its mark).
func (s *Store) Renew(keys, args []string) (any, error) {
	if len(keys) != 1 && len(keys) != 3 || len(args) != 2 {
		return nil, refuse("ERR renew takes 1 key or 3, and 2 arguments")
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
	case !owns(value, token) && len(keys) == 3 && reads(value):
		return s.renewMember(lock, keys[1], keys[2], token, ttl)
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

// renewMember asks whether the token is one of the members, who read or have a
// permit, and raises what is left to at least ttl. The key lasts as long as each of
// them.
func (s *Store) renewMember(key, members, marks, token string, ttl int64) (any, error) {
	end, _, err := s.permit(members, token)
	if err != nil {
		s.hit(ReadersWrongType)
		return nil, err
	}
	if end <= s.ms {
		s.hit(MemberAbsent)
		return absent(), nil
	}
	note, marked, err := s.HGet(marks, token)
	switch {
	case err != nil:
		s.hit(MarksWrongType)
		return nil, err
	case marked:
		s.hit(MemberMarked)
		return []any{"broken", "0", end - s.ms, int64(0), int64(0), int64(0), markOf(token, note)}, nil
	case ttl == 0:
		s.hit(MemberAsked)
	case end < s.ms+ttl:
		s.hit(MemberRaised)
		end = s.ms + ttl
		_ = s.zput(members, token, float64(end)) // the type was checked
		last := s.lastEnd(members) - s.ms
		s.PExpire(members, last)
		if s.PTTL(key) < last {
			s.PExpire(key, last)
		}
	default:
		s.hit(MemberKept)
	}
	return []any{"renewed", "0", end - s.ms, int64(0), int64(0), int64(0), ""}, nil
}

// absent and other are the answers to one that holds nothing.
func absent() any {
	return []any{"absent", "0", int64(-2), int64(0), int64(0), int64(0), ""}
}

func other(value string, left int64) any {
	return []any{"other", "0", left, int64(0), int64(0), int64(0), value}
}
