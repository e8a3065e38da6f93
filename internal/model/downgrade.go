package model

import "strconv"

// Downgrade turns the holder of a lock into a reader of it, and lets in the readers
// who wait behind it.
//
// Keys: lock, queue, fence, readers, and with quarantine node. Arguments: token, ttl in
// ms, and with quarantine terms. The reply:
// granted, broken, absent or other; fence (0 for a second run), ms left, time, 0, 0,
// holder.
func (s *Store) Downgrade(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 2)
	if !ok {
		return nil, refuse("ERR downgrade takes 4 keys and 2 arguments")
	}
	s.Begin()
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	k, token := namesOf(keys), args[0]
	value, held, err := s.Get(k.lock)
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	left := s.PTTL(k.lock)
	switch {
	case !held:
		s.hit(DowngradeAbsent)
		return absent(), nil
	case !owns(value, token):
		return s.downgraded(k, value, token, left)
	case broken(value, token):
		s.hit(DowngradeBroken)
		return []any{"broken", "0", left, s.us, int64(0), int64(0), value}, nil
	}
	if k.closed, _, err = s.quarantine(node, terms); err != nil {
		return nil, err
	}
	if _, err := s.ZRange(k.queue); err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	fence := fenceOrZero(value, token)
	s.hit(Downgrades)
	left = max(left, ttl)
	s.Del(k.readers)
	_ = s.zput(k.readers, token, float64(s.ms+left)) // it is new
	s.PExpire(k.readers, left)
	if err := s.setPX(k.lock, marker+fence, left); err != nil {
		return nil, err
	}
	if _, err := s.admit(k, noToken, 0, false, nil); err != nil {
		return nil, err
	}
	return []any{"granted", fence, left, s.us, int64(0), int64(0), ""}, nil
}

// downgraded answers one that does not hold the lock: a first run may have made it a
// reader.
func (s *Store) downgraded(k names, value, token string, left int64) (any, error) {
	if reads(value) {
		end, _, err := s.permit(k.readers, token)
		if err != nil {
			s.hit(ReadersWrongType)
			return nil, err
		}
		if end > s.ms {
			s.hit(DowngradeAgain)
			return []any{"granted", "0", end - s.ms, s.us, int64(0), int64(0), ""}, nil
		}
	}
	s.hit(DowngradeOther)
	return []any{"other", "0", left, s.us, int64(0), int64(0), value}, nil
}
