package model

import (
	"cmp"
	"strconv"
)

// maxFence is 2^53 - 1: the largest integer that Lua, which has floating-point
// numbers only, tells from its neighbours.
const maxFence = 1<<53 - 1

// nextFence makes the next fence, stores it, and returns the value that a lock
// held by the token has then. The fence is the clock, unless one as large was
// given out before: then one more than that. So fences grow even when the
// counter was lost, as long as the clock did not go back meanwhile; and what is
// stored but is no fence is overwritten.
func (s *Store) nextFence(key, token string) (value, fence string, err error) {
	return s.fenceFrom(key, token, s.us)
}

// fenceFrom is nextFence for a clock that shows next.
func (s *Store) fenceFrom(key, token string, next int64) (value, fence string, err error) {
	e, ok, err := s.typed(key, String)
	if err != nil {
		s.hit(FenceWrongType)
		return "", "", err
	}
	last, isNumber := digits(e.str)
	switch {
	case !ok:
		s.hit(FenceNow)
	case !isNumber || last >= maxFence:
		s.hit(FenceGarbage)
	case last >= next:
		s.hit(FenceAhead)
		next = last + 1
	default:
		s.hit(FenceNow)
	}
	s.scratch = append(append(s.scratch[:0], token...), ':')
	s.scratch = strconv.AppendInt(s.scratch, next, 10)
	value = string(s.scratch)
	fence = value[len(token)+1:] // shares the value's bytes: one allocation for both
	s.put(key, entry{kind: String, str: fence})
	return value, fence, nil
}

// blockSize is how many fences a waiter of mode W gets, which passes the lock on
// among the goroutines of its own process.
const blockSize = 4096

// reserve takes the fences behind the one just made, if the mode is W.
func (s *Store) reserve(key, mode, fence string) {
	if mode != "W" {
		return
	}
	s.hit(FenceBlock)
	n, _ := strconv.ParseFloat(fence, 64)
	s.put(key, entry{kind: String, str: whole(n + (blockSize - 1))})
}

// owns says whether the lock's value is the token's. Tokens contain no colon,
// so the token is compared whole.
func owns(value, token string) bool {
	return len(value) > len(token) && value[len(token)] == ':' && value[:len(token)] == token
}

// fenceOf returns the first number behind a colon behind the token, "" if there
// is none. What follows the number is free for marks.
func fenceOf(value, token string) string {
	for i := len(token); i < len(value); i++ {
		if value[i] != ':' {
			continue
		}
		end := i + 1
		for end < len(value) && isDigit(value[end]) {
			end++
		}
		if end > i+1 {
			return value[i+1 : end]
		}
	}
	return ""
}

// fenceOrZero is fenceOf, with "0" for none.
func fenceOrZero(value, token string) string {
	return cmp.Or(fenceOf(value, token), "0")
}

// digits reads a decimal number without a sign. One that is too large for an
// int64 is cut off there: all that matters of it is that it is too large.
func digits(s string) (int64, bool) {
	var n int64
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = min(n, (1<<63-10)/10)*10 + int64(s[i]-'0')
	}
	return n, s != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
