package model

import "strconv"

// grace is how long, in ms, a client stays on the list when its text has
// expired: so nobody is off the list while the text is there.
const grace = 1000

// Announce says who a client is and what it holds.
//
// Keys: procs (the list of all), proc. Arguments: id, text ("": the client is
// gone), ttl in ms. The reply: OK.
func (s *Store) Announce(keys, args []string) (any, error) {
	if len(keys) != 2 || len(args) != 3 {
		return nil, refuse("ERR announce takes 2 keys and 3 arguments")
	}
	s.Begin()
	procs, proc, id, text := keys[0], keys[1], args[0], args[1]
	if text == "" {
		return s.depart(procs, proc, id)
	}
	ttl, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	if err := s.zput(procs, id, float64(s.ms+ttl)); err != nil {
		s.hit(ProcsWrongType)
		return nil, err
	}
	if err := s.dropClients(procs); err != nil {
		return nil, err
	}
	if s.PTTL(procs) < ttl {
		s.hit(AnnounceListRaised)
		s.PExpire(procs, ttl)
	} else {
		s.hit(AnnounceListKept)
	}
	return "OK", s.Set(proc, text, ttl)
}

// depart takes a client off the list.
func (s *Store) depart(procs, proc, id string) (any, error) {
	listed, err := s.ZRem(procs, id)
	switch {
	case err != nil:
		s.hit(ProcsWrongType)
		return nil, err
	case listed:
		s.hit(AnnounceGone)
	default:
		s.hit(AnnounceGoneAlready)
	}
	s.Del(proc)
	return "OK", nil
}

// dropClients takes those off the list whose text has expired.
func (s *Store) dropClients(procs string) error {
	n, err := s.zremBelow(procs, float64(s.ms-grace))
	if n > 0 {
		s.hit(ProcsDropped)
	}
	return err
}

// Roster lists the clients that have said who they are.
//
// Keys: procs. No arguments. The reply: time in ms, then id and expiry in ms of
// each, in the order of their expiry.
func (s *Store) Roster(keys, _ []string) (any, error) {
	if len(keys) != 1 {
		return nil, refuse("ERR roster takes 1 key")
	}
	s.Begin()
	if err := s.dropClients(keys[0]); err != nil {
		s.hit(ProcsWrongType)
		return nil, err
	}
	clients, err := s.ZRange(keys[0])
	if err != nil {
		return nil, err
	}
	if len(clients) == 0 {
		s.hit(RosterNobody)
	} else {
		s.hit(RosterSome)
	}
	reply := []any{s.ms}
	for _, c := range clients {
		reply = append(reply, c.Member, whole(c.Score))
	}
	return reply, nil
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
		s.hit(ProcWrongType)
		return nil, err
	case ok:
		s.hit(WhoisKnown)
	default:
		s.hit(WhoisUnknown)
	}
	return text, nil
}
