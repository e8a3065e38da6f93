package model

import (
	"cmp"
	"strconv"
)

// Resume passes a held lock from one token to another, with the next fence: a
// process goes on with a lease that it was handed.
//
// Keys: lock, queue, fence, readers, of which queue and readers are not touched, and
// with quarantine node. Arguments: old token, new token, ttl in ms, and with
// quarantine terms. The reply: granted, broken, absent, other, or held in quarantine; fence, ms left, time, 0, 0, holder.
func (s *Store) Resume(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 3)
	if !ok {
		return nil, refuse("ERR resume takes 4 keys and 3 arguments")
	}
	s.Begin()
	ttl, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	lock, before, after := keys[0], args[0], args[1]
	value, held, err := s.Get(lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	if !held {
		s.hit(ResumeAbsent)
		return absent(), nil
	}
	left := s.PTTL(lock)
	again, holder := owns(value, after), before
	if again {
		holder = after
	}
	if !owns(value, holder) {
		s.hit(ResumeOther)
		return other(value, left), nil
	}
	if broken(value, holder) {
		s.hit(ResumeBroken)
		return []any{"broken", "0", left, int64(0), int64(0), int64(0), value}, nil
	}
	if again { // a second run: the first one's reply was lost
		s.hit(ResumeAgain)
		left = max(left, ttl)
		s.PExpire(lock, left)
		return s.withFence("granted", fenceOf(value, after), left, s.us, int64(0), int64(0), ""), nil
	}
	shut, odds, err := s.quarantine(node, terms)
	if err = cmp.Or(odds, err); err != nil {
		return nil, err
	}
	if shut > 0 {
		s.hit(ResumeClosed)
		return []any{"held", "0", shut, s.us, int64(0), int64(0), closedHolder}, nil
	}
	left = max(left, ttl)
	value, fence, err := s.nextFence(keys[2], after)
	if err != nil {
		s.hit(ResumeFenceWrongType)
		return nil, err
	}
	if err := s.setPX(lock, value, left); err != nil {
		return nil, err
	}
	s.hit(ResumePasses)
	return []any{"granted", fence, left, s.us, int64(0), int64(0), ""}, nil
}
