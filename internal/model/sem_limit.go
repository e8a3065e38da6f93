package model

// SemLimit sets how many permits a semaphore has, for all who use it, or reads
// that. Permits that are new go to the first waiters.
//
// Keys: semaphore, queue, fence, limit, and with quarantine node. Arguments: permits (0:
// what each caller says counts again; "": only read), and with quarantine terms. The
// reply: set, 0, 0, time, 0, 0, "", permits (0:
// not set), taken.
func (s *Store) SemLimit(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 4, 1)
	if !ok {
		return nil, refuse("ERR sem_limit takes 4 keys and 1 argument")
	}
	s.Begin()
	limit, err := s.limit(keys[3], "0")
	if err != nil {
		return nil, err
	}
	taken, err := s.taken(keys[0])
	if err != nil {
		return nil, err
	}
	shut, _, err := s.quarantine(node, terms)
	if err != nil {
		return nil, err
	}
	if _, err := s.ZRange(keys[1]); err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	if limit, err = s.setLimit(keys[3], args[0], limit); err != nil {
		return nil, err
	}
	p := permits{Store: s, names: names{lock: keys[0], queue: keys[1], fence: keys[2], closed: shut}}
	g, err := p.grant(noToken, 0, limit-taken)
	if err != nil {
		return nil, err
	}
	if g.given > 0 {
		s.hit(SemLimitHands)
		if err := p.tell(); err != nil {
			return nil, err
		}
	}
	return []any{"set", "0", int64(0), s.us, int64(0), int64(0), "", limit, taken + g.given}, nil
}

// setLimit returns the limit that counts from now on.
func (s *Store) setLimit(key, want string, limit int64) (int64, error) {
	switch want {
	case "":
		s.hit(SemLimitRead)
		return limit, nil
	case "0":
		s.hit(SemLimitUnset)
		s.Del(key)
		return 0, nil
	}
	n, ok := digits(want)
	if !ok {
		return 0, refuse("ERR value is not an integer or out of range")
	}
	s.hit(SemLimitSet)
	return n, s.Set(key, want, 0)
}
