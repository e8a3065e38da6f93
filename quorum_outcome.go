package zamok

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// outcome is what came of a round.
type outcome struct {
	won    bool
	fence  int64
	left   time.Duration // of the lease, counted from the beginning of the round
	time   int64
	holder answer // who is in the way, when that is known
	own    answer // a vote of an earlier round of the same call is
	tie    bool   // nobody has a majority
	err    error  // a majority did not answer, or the members refuse
	token  string
	ready  []*member // who answered
}

// why is what a round ended with that had no majority.
func (r *round) why() outcome {
	var o outcome
	votes := make(map[string]int)
	open, most := 0, ""
	for _, s := range r.seats {
		o.time = max(o.time, s.vote.time)
		switch s.state {
		case grantedSeat, silentSeat, lostSeat:
			open++
		case heldSeat:
			open++
			token, _, _ := strings.Cut(s.vote.holder, ":")
			if strings.HasPrefix(token, r.tries) {
				o.own = s.vote // of an earlier round, still being given back: nobody else has it
				continue
			}
			if votes[token]++; votes[token] > votes[most] {
				most = token
				o.holder = s.vote
			}
		}
	}
	switch {
	case r.answered() < r.q.majority:
		return outcome{err: r.failure()}
	case open < r.q.majority:
		o.holder = answer{status: "held", holder: closedHolder, pttl: r.until(closedSeat), time: o.time}
	case votes[most] >= r.q.majority:
		o.holder.pttl = r.until(heldSeat)
	default:
		o.tie = true
	}
	return o
}

// until is when a majority is free of what those seats have: the time after which the
// majority-th of those that answered is.
func (r *round) until(state seatState) time.Duration {
	var all []time.Duration
	for _, s := range r.seats {
		switch {
		case s.state == state && s.vote.pttl < 0:
			all = append(all, longestLook)
		case s.state == state:
			all = append(all, s.vote.pttl)
		case s.state == grantedSeat, s.state == heldSeat:
			all = append(all, 0)
		}
	}
	return nth(all, r.q.majority)
}

// failure joins what the members said that gave no usable answer.
func (r *round) failure() error {
	var errs []error
	for _, s := range r.seats {
		if s.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.m.name, s.err))
		}
	}
	return r.q.failure(errs)
}

var (
	errNoMajority = errors.New("no majority of the members answered")
	errTied       = errors.New("no majority of the members has one vote; those of earlier tries are still being given back")
)
