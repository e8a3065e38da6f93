package model

import (
	"slices"
	"strconv"
	"strings"
)

// stream is a list of entries of one field each. What it remembers beyond them
// is the last id that it gave, so that ids grow also when the clock goes back
// and when all entries are gone.
type stream struct {
	last    streamID
	entries []Entry
}

// streamID is MS-SEQ: the server's time, and a number within the millisecond.
type streamID struct{ ms, seq int64 }

// Entry is one of a stream.
type Entry struct {
	id          streamID
	Field, Text string
}

// ID returns the entry's id as a server prints it.
func (e Entry) ID() string {
	return strconv.FormatInt(e.id.ms, 10) + "-" + strconv.FormatInt(e.id.seq, 10)
}

func (id streamID) after(other streamID) bool {
	return id.ms > other.ms || id.ms == other.ms && id.seq > other.seq
}

// parseID reads an id as XRANGE takes it: a number without a second one is the
// first of its millisecond.
func parseID(text string) (streamID, bool) {
	first, second, both := strings.Cut(text, "-")
	ms, ok := digits(first)
	seq, ok2 := digits(second)
	return streamID{ms, seq}, ok && (ok2 || !both)
}

// xadd is XADD with MAXLEN = most and the id *. It returns how many of the
// oldest went.
func (s *Store) xadd(key, field, text string, most int) (trimmed int, err error) {
	e, ok, err := s.typed(key, Stream)
	if err != nil {
		return 0, err
	}
	if !ok {
		e = entry{kind: Stream, stream: new(stream)}
		s.put(key, e)
	}
	x := e.stream
	if s.ms > x.last.ms {
		x.last = streamID{s.ms, 0}
	} else {
		x.last.seq++
	}
	x.entries = append(x.entries, Entry{x.last, field, text})
	trimmed = max(0, len(x.entries)-most)
	x.entries = slices.Delete(x.entries, 0, trimmed)
	return trimmed, nil
}

// XRange is XRANGE - +: all entries, oldest first. The slice is the store's own:
// it is for reading, until the stream changes.
func (s *Store) XRange(key string) ([]Entry, error) {
	e, ok, err := s.typed(key, Stream)
	if err != nil || !ok {
		return nil, err
	}
	return e.stream.entries, nil
}
