package model

import "strings"

// markTTL is how long marks are kept, in ms: the longest lease, and a minute in
// which the one that it was taken from may ask.
const markTTL = longestLease + 60_000

// markOf is a mark as the value of a lock has it.
func markOf(token, note string) string { return token + ":0" + mark + note }

// Mark asks one who has a permit, or reads, to stop, for an operator. It keeps what
// it has, and no renewal raises that any more.
//
// Keys: semaphore or readers, marks. Arguments: token, note, inbox of the holder
// ("": none), key of the semaphore or lock. The reply: asked or absent; 0, ms left,
// 0, 0, 0, the mark.
func (s *Store) Mark(keys, args []string) (any, error) {
	if len(keys) != 2 || len(args) != 4 {
		return nil, refuse("ERR mark takes 2 keys and 4 arguments")
	}
	s.Begin()
	token, inbox := args[0], args[2]
	if _, err := s.taken(keys[0]); err != nil {
		return nil, err
	}
	end, has, _ := s.permit(keys[0], token) // the type was checked
	note, marked, err := s.HGet(keys[1], token)
	switch {
	case err != nil:
		s.hit(MarksWrongType)
		return nil, err
	case !has:
		s.hit(MarkAbsent)
		return absent(), nil
	case marked:
		s.hit(MarkAgain)
	default:
		s.hit(Marks)
		note = args[1]
		_, _ = s.HSet(keys[1], token, note) // the type was checked
	}
	s.PExpire(keys[1], markTTL)
	if inbox == "" {
		s.hit(MarkUntold)
	} else {
		s.hit(MarkTold)
		s.env.Publish(inbox, strings.Join([]string{"break", token, args[3]}, " "))
	}
	return []any{"asked", "0", end - s.ms, int64(0), int64(0), int64(0), markOf(token, note)}, nil
}

// Fate reads what is left of a lease that is over, also of one that was a writer's
// until it was broken.
//
// Keys: fence, marks, broken. Argument: token. The reply: the last fence of the slot
// ("0": none), the mark ("": nobody asked for its end).
func (s *Store) Fate(keys, args []string) (any, error) {
	if len(keys) != 3 || len(args) != 1 {
		return nil, refuse("ERR fate takes 3 keys and 1 argument")
	}
	s.Begin()
	last, ok, err := s.Get(keys[0])
	switch {
	case err != nil:
		s.hit(FenceWrongType)
		return nil, err
	case !ok:
		last = "0"
	}
	note, marked, err := s.HGet(keys[1], args[0])
	if err != nil {
		s.hit(MarksWrongType)
		return nil, err
	}
	value, _, err := s.Get(keys[2])
	switch {
	case err != nil:
		s.hit(BrokenWrongType)
		return nil, err
	case marked:
		s.hit(FateMarked)
		return []any{last, markOf(args[0], note)}, nil
	case owns(value, args[0]):
		s.hit(FateBroken)
		return []any{last, value}, nil
	}
	s.hit(FateUnknown)
	return []any{last, ""}, nil
}
