package model

import (
	"cmp"
	"strconv"
)

// MultiAcquire takes several locks at once that nobody has and nobody waits for.
//
// Keys: lock, queue, fence of each, and with quarantine node. Arguments: all ("1": none
// unless all are free; "0": those before the first that is not), ttl in ms, then the
// token for each, and with quarantine terms. The reply: granted or held (none was taken); 0, the least ms left of what was taken,
// time, which one is in the way (from 1; 0: none), 0, "", and a list of fence and ms
// left of each that was taken.
func (s *Store) MultiAcquire(keys, args []string) (any, error) {
	n := len(keys) / 3
	node, terms, ok := quarantined(keys, args, 3*n, 2+n)
	if !ok {
		return nil, refuse("ERR multi_acquire takes 3 keys for each token")
	}
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	s.Begin()
	shut, odds, err := s.quarantine(node, terms)
	if err = cmp.Or(odds, err); err != nil {
		return nil, err
	}
	tokens := args[2 : 2+n]
	values := make([]string, len(tokens)) // "": free
	stop, last := 0, len(tokens)
	for i, token := range tokens {
		var inTheWay bool
		if values[i], inTheWay, err = s.multiLook(keys[3*i:3*i+3], token, shut); err != nil {
			return nil, err
		}
		if !inTheWay {
			continue
		}
		stop, last = i+1, i
		if args[0] == "1" {
			s.hit(MultiAllOrNone)
			last = 0
		}
		break
	}
	status, least, taken := "held", int64(0), []any{}
	for i, token := range tokens[:last] {
		fence, left, err := s.multiTake(keys[3*i:3*i+3], token, values[i], ttl)
		if err != nil {
			return nil, err
		}
		taken = append(taken, fence, left)
		if i == 0 || left < least {
			status, least = "granted", left
		}
	}
	return []any{status, "0", least, s.us, int64(stop), int64(0), "", taken}, nil
}

// multiLook says whether a lock is in the way of the token; the value is that which
// the token has already, or "".
func (s *Store) multiLook(keys []string, token string, shut int64) (value string, inTheWay bool, err error) {
	if !s.exists(keys[0]) && !s.exists(keys[1]) {
		if _, _, err := s.Get(keys[2]); err != nil {
			s.hit(MultiFenceWrongType)
			return "", false, err
		}
		if shut > 0 {
			s.hit(MultiClosed)
		}
		return "", shut > 0, nil
	}
	value, held, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return "", false, err
	}
	if _, err := s.ZRange(keys[1]); err != nil {
		s.hit(QueueWrongType)
		return "", false, err
	}
	switch {
	case !held:
		s.hit(MultiQueued)
	case !owns(value, token):
		s.hit(MultiHeld)
	default:
		return value, false, nil
	}
	return "", true, nil
}

// multiTake makes the token the holder, or raises what it has.
func (s *Store) multiTake(keys []string, token, value string, ttl int64) (fence string, left int64, err error) {
	if value == "" {
		s.hit(MultiFree)
		value, fence, err := s.nextFence(keys[2], token)
		if err != nil {
			return "", 0, err
		}
		return fence, ttl, s.setPX(keys[0], value, ttl)
	}
	left = s.PTTL(keys[0])
	switch {
	case broken(value, token):
		s.hit(MultiMineBroken)
	case left < ttl:
		s.hit(MultiMineRaised)
		s.PExpire(keys[0], ttl)
		left = ttl
	default:
		s.hit(MultiMineKept)
	}
	if fence = fenceOf(value, token); fence == "" {
		s.hit(NoFence)
		fence = "0"
	}
	return fence, left, nil
}
