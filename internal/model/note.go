package model

import (
	"sort"
	"strconv"
)

// noteField is the one field of an event.
const noteField = "e"

// Note writes down what happened to leases. The oldest go when there are more
// than may be kept.
//
// Keys: events. Arguments: how many to keep, ttl in ms, then the texts. The
// reply: OK.
func (s *Store) Note(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) < 2 {
		return nil, refuse("ERR note takes 1 key and at least 2 arguments")
	}
	s.Begin()
	most, err1 := strconv.Atoi(args[0])
	ttl, err2 := strconv.ParseInt(args[1], 10, 64)
	if err1 != nil || err2 != nil || most < 0 {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	for _, text := range args[2:] {
		trimmed, err := s.xadd(keys[0], noteField, text, most)
		switch {
		case err != nil:
			s.hit(EventsWrongType)
			return nil, err
		case trimmed > 0:
			s.hit(NoteTrims)
		default:
			s.hit(NoteAdds)
		}
	}
	s.PExpire(keys[0], ttl)
	return "OK", nil
}

// Events reads what happened to leases: what came after an id that is known, the
// oldest of it first, or the newest.
//
// Keys: events. Arguments: after ("": the newest are wanted), how many at most.
// The reply: time in ms, then id and text of each, oldest first.
func (s *Store) Events(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 2 {
		return nil, refuse("ERR events takes 1 key and 2 arguments")
	}
	s.Begin()
	after, isID := parseID(args[0])
	most, err := strconv.Atoi(args[1])
	if err != nil || !isID && args[0] != "" {
		return nil, refuse("ERR value is not an integer, or not an id of a stream")
	}
	list, err := s.XRange(keys[0])
	if err != nil {
		s.hit(EventsWrongType)
		return nil, err
	}
	if most <= 0 && s.exists(keys[0]) {
		s.hit(EventsOfNoCount) // a count of 0 is answered by nothing at all
		return nil, refuse("ERR attempt to get length of a boolean value")
	}
	if args[0] == "" {
		s.hit(EventsNewest)
		list = list[max(0, len(list)-max(0, most)):]
	} else {
		s.hit(EventsAfter)
		list = list[sort.Search(len(list), func(i int) bool { return list[i].id.after(after) }):]
		list = list[:min(len(list), max(0, most))]
	}
	reply := []any{s.ms}
	for _, e := range list {
		reply = append(reply, e.ID(), e.Text)
	}
	return reply, nil
}
