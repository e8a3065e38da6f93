package model

import "strconv"

// Announce says who a client is.
//
// Keys: proc. Arguments: text ("": the client is gone), ttl in ms. The reply: OK.
func (s *Store) Announce(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 2 {
		return nil, refuse("ERR announce takes 1 key and 2 arguments")
	}
	s.Begin()
	if args[0] == "" {
		s.hit(AnnounceGone)
		s.Del(keys[0])
		return "OK", nil
	}
	ms, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	s.hit(AnnounceSays)
	return "OK", s.Set(keys[0], args[0], ms)
}

// Whois reads what a client says of itself.
//
// Keys: proc. No arguments. The reply: the text ("": nothing is known).
func (s *Store) Whois(keys, _ []string) (any, error) {
	if len(keys) != 1 {
		return nil, refuse("ERR whois takes 1 key")
	}
	s.Begin()
	text, ok, err := s.Get(keys[0])
	switch {
	case err != nil:
		s.hit(LockWrongType)
		return nil, err
	case ok:
		s.hit(WhoisKnown)
	default:
		s.hit(WhoisUnknown)
	}
	return text, nil
}
