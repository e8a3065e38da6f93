package model

import (
	"strconv"
	"strings"
)

// stampOf takes apart what stands in the key of the node, RUN_ID UNTIL_MS MAXTTL_MS
// MEMBERS. What is none is as good as absent.
func stampOf(value string) (run string, until int64, terms string, ok bool) {
	run, rest, _ := strings.Cut(value, " ")
	ends, terms, _ := strings.Cut(rest, " ")
	until, ok = digits(ends)
	_, members, _ := strings.Cut(terms, " ")
	if _, isTerms := longest(terms); !ok || !isTerms || members == "" || !isWord(run) {
		return "", 0, "", false
	}
	return run, until, terms, true
}

// longest returns the longest lease of the deployment, in ms, with which its terms
// begin.
func longest(terms string) (int64, bool) {
	ms, _, ok := strings.Cut(terms, " ")
	n, isNumber := digits(ms)
	return n, ok && isNumber
}

// isWord says whether these are letters and digits, at least one.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !isDigit(s[i]) && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// closedHolder stands in a reply where the holder would, when there is none and
// nobody may be granted anything all the same.
const closedHolder = "z1-quarantine"

// quarantined takes the key of the node and the terms off what a script is given, of
// which there are so many without: they come last, and only with quarantine.
func quarantined(keys, args []string, fewKeys, fewArgs int) (node, terms []string, ok bool) {
	more := len(keys) - fewKeys
	if more < 0 || more > 1 || len(args) != fewArgs+more {
		return nil, nil, false
	}
	return keys[fewKeys:], args[fewArgs:], true
}

// quarantine says for how many ms nobody may be granted anything, 0 when all is
// well: it is about data which this server process has not had all along, so that a
// lease may be missing. The first that sees this begins the quarantine. odds is the
// refusal of a client that was told other terms than the deployment; then closed is
// not 0 either.
//
// keys are empty without quarantine, else the key of the node; args are then its
// terms.
func (s *Store) quarantine(keys, args []string) (closed int64, odds, err error) {
	if len(keys) == 0 {
		return 0, nil, nil
	}
	terms := args[0]
	most, ok := longest(terms)
	if !ok {
		return 0, nil, refuse("ERR no terms of a quarantine")
	}
	value, _, err := s.Get(keys[0])
	if err != nil {
		s.hit(NodeWrongType)
		return 0, nil, err
	}
	run, until, said, stamped := stampOf(value)
	if stamped && said != terms {
		s.hit(NodeOtherTerms)
		return most, refuse("ERR zamok: other terms: the server has " + said + " and the client " + terms), nil
	}
	closed = until - s.ms
	switch {
	case !stamped || run != s.run || closed > most: // lost, restarted, taken over; or the clock was set back
		s.hit(NodeAnew)
		return most, nil, s.Set(keys[0], s.stamp(s.ms+most, terms), 0)
	case closed > 0:
		s.hit(NodeClosed)
		return closed, nil, nil
	}
	s.hit(NodeOpen)
	return 0, nil, nil
}

func (s *Store) stamp(until int64, terms string) string {
	return s.run + " " + strconv.FormatInt(until, 10) + " " + terms
}

// Stamp says of an empty server that it is new, so that it serves at once, or reads
// what is said of the server.
//
// Keys: node. Argument: terms ("": only read). The reply: stamped, stands, used or
// read; 0, ms of quarantine left, time, 0, 0, what stands in the key, run_id of the
// process.
func (s *Store) Stamp(keys, args []string) (any, error) {
	if len(keys) != 1 || len(args) != 1 {
		return nil, refuse("ERR stamp takes 1 key and 1 argument")
	}
	s.Begin()
	value, _, err := s.Get(keys[0])
	if err != nil {
		s.hit(NodeWrongType)
		return nil, err
	}
	terms, status := args[0], "used"
	run, until, said, stamped := stampOf(value)
	switch {
	case terms == "":
		s.hit(StampRead)
		status = "read"
	case len(s.Keys()) == 0:
		s.hit(Stamps)
		status, value, until = "stamped", s.stamp(s.ms, terms), s.ms
		_ = s.Set(keys[0], value, 0)
	case stamped && run == s.run && said == terms:
		s.hit(StampStands)
		status = "stands"
	default:
		s.hit(StampUsed)
	}
	id := s.run
	if value == "" && terms == "" {
		id = ""
	}
	return []any{status, "0", max(0, until-s.ms), s.us, int64(0), int64(0), value, id}, nil
}
