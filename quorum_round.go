package zamok

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// round is one try to have a majority: one token, one vote of each member at most.
// Its goroutine, run, goes on when the caller has its answer, until every member has
// answered: a vote that comes late is confirmed too, or is given back.
type round struct {
	q      *quorum
	ctx    context.Context //nolint:containedctx // the caller's
	back   context.Context //nolint:containedctx // of what goes on behind, until the round ends
	keys   []string        // of the lock
	token  string
	ttl    time.Duration
	ttlMS  string
	member string // the caller's entry in the queue
	block  bool
	limit  time.Duration

	began   instant
	seats   []seat
	replies chan ballot
	pending int
	propose string
	fence   int64 // 0 while they vote
	over    bool  // it is decided
	outcome outcome
	decided chan outcome
}

// seat is what is known of one member.
type seat struct {
	m         *member
	state     seatState
	vote      answer
	confirmed bool // it has the fence
	left      bool // its queue has no entry of ours
	err       error
}

type seatState uint8

const (
	silentSeat  seatState = iota // asked, and no answer yet
	grantedSeat                  // it has our vote
	heldSeat                     // another has it
	closedSeat                   // it is in quarantine
	failedSeat                   // no usable answer: it may have our vote
	refusedSeat                  // it was not asked, so it has not
	lostSeat                     // it had our vote, and has it no more: nothing is owed to it
)

// ballot is what a member answered to a vote, or to the write-back of the fence.
type ballot struct {
	seat    int
	confirm bool
	ans     answer
	err     error
	unasked bool
}

// outcome is what came of a round.
type outcome struct {
	won    bool
	fence  int64
	left   time.Duration // of the lease, counted from the beginning of the round
	time   int64
	holder answer // who is in the way, when that is known
	tie    bool   // nobody has a majority
	err    error  // a majority did not answer, or the members refuse
	token  string
	ready  []*member // who answered
}

func (q *quorum) newRound(ctx context.Context, call driver.Call) *round {
	ms, _ := strconv.ParseInt(call.Args[1], 10, 64)
	r := &round{
		q: q, ctx: ctx, back: q.behind(ctx), keys: call.Keys, token: q.c.newToken(), ttl: time.Duration(ms) * time.Millisecond,
		ttlMS: call.Args[1], member: memberOf(call.Args), block: call.Args[4] == modeBlock, limit: call.Limit,
		began: q.c.clock.now(), propose: strconv.FormatInt(q.proposal(), 10), replies: make(chan ballot, 2*len(q.members)), decided: make(chan outcome, 1),
	}
	for _, m := range q.members {
		r.seats = append(r.seats, seat{m: m})
	}
	return r
}

// hold plays the round and returns once it is decided.
func (r *round) hold() outcome {
	r.q.begins(r.token)
	r.q.goes(r.run)
	return <-r.decided
}

func (r *round) run() {
	r.pending = len(r.seats)
	for i := range r.seats {
		r.q.goes(func() { r.replies <- r.ask(i) })
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	gone := r.ctx.Done()
	patient := false
	for r.pending > 0 {
		select {
		case b := <-r.replies:
			r.pending--
			r.take(b)
		case <-timer.C:
			r.decide(true)
		case <-gone:
			gone = nil
			r.lose(outcome{err: r.ctx.Err()})
		}
		r.decide(r.pending == 0)
		if !r.over && !patient && r.answered() >= r.q.majority {
			patient = true
			timer.Reset(r.q.patience(r.q.c.clock.now().sub(r.began)))
		}
	}
	r.decide(true)
	r.settle()
}

// ask has one member vote.
func (r *round) ask(i int) ballot {
	m := r.seats[i].m
	if m.silent() {
		return ballot{seat: i, err: errNotAsked, unasked: true}
	}
	if err := m.look(r.back, r.limit); err != nil {
		return ballot{seat: i, err: err, unasked: true}
	}
	ans, err := m.eval(r.back, r.q.voteCall(r.keys, r.token, r.ttlMS, r.propose, r.limit))
	return ballot{seat: i, ans: ans, err: err}
}

// take notes an answer, and asks for what follows from it.
func (r *round) take(b ballot) {
	s := &r.seats[b.seat]
	s.left = s.left || b.confirm && b.err == nil
	s.m.tells(b.ans.time)
	switch {
	case b.unasked:
		s.state, s.err = refusedSeat, b.err
		if unfit := (*unfitError)(nil); errors.As(b.err, &unfit) && unfit.mistake {
			r.lose(outcome{err: b.err})
		}
	case b.err != nil:
		if s.err = b.err; !b.confirm {
			s.state = failedSeat
		}
	case b.confirm && b.ans.status == "confirmed":
		s.confirmed = true
	case b.confirm: // it has lost our vote
		s.state = lostSeat
	case b.ans.status == "granted":
		s.state, s.vote = grantedSeat, b.ans
		switch {
		case r.over && (!r.outcome.won || r.q.wasLeft(r.token)):
			r.giveBack(s)
		case r.fence > 0:
			r.writeBack(b.seat)
		}
	case b.ans.status == "quarantine":
		s.state, s.vote = closedSeat, b.ans
	default:
		s.state, s.vote = heldSeat, b.ans
	}
}

// writeBack sees to it that a member that voted for us has the fence: it has when it
// was proposed, and then has only to be told that we wait no longer.
func (r *round) writeBack(i int) {
	s := &r.seats[i]
	s.confirmed = s.vote.fence == r.fence && !r.block
	if !s.confirmed || r.member != "" {
		r.confirm(i)
	}
}

// confirm writes the fence back to a member that voted for us.
func (r *round) confirm(i int) {
	m, last := r.seats[i].m, r.fence
	if r.block {
		last += blockSize - 1
	}
	r.pending++
	r.q.goes(func() {
		ans, err := m.eval(r.back, confirmCall(r.keys, r.token, r.fence, last, r.member, r.limit))
		r.replies <- ballot{seat: i, confirm: true, ans: ans, err: err}
	})
}

func (r *round) count(f func(seat) bool) (n int) {
	for _, s := range r.seats {
		if f(s) {
			n++
		}
	}
	return n
}

func (r *round) answered() int {
	return r.count(func(s seat) bool {
		return s.state == grantedSeat || s.state == heldSeat || s.state == closedSeat || s.state == lostSeat
	})
}

// decide does what is due: the write-back at the majority's votes, the end at the
// majority's acknowledgements, or when there cannot be one. last says that nobody is
// waited for any longer.
func (r *round) decide(last bool) {
	if r.over {
		return
	}
	granted := r.count(r.counts)
	open := granted
	if !last {
		open += r.count(func(s seat) bool { return s.state == silentSeat })
	}
	confirmed := r.count(func(s seat) bool { return s.confirmed && r.counts(s) })
	switch {
	case confirmed >= r.q.majority:
		r.win()
	case open < r.q.majority && (last || r.answered() >= r.q.majority):
		r.lose(r.why())
	case open < r.q.majority: // it is lost, but not yet known whether another has it
	case r.fence == 0 && granted >= r.q.majority:
		// The largest of these votes: each is larger than any fence that its member
		// knew of, and whoever had the lock before wrote its own to one of them.
		for _, s := range r.seats {
			if s.state == grantedSeat {
				r.fence = max(r.fence, s.vote.fence)
			}
		}
		for i := range r.seats {
			if r.seats[i].state == grantedSeat {
				r.writeBack(i)
			}
		}
		if r.count(func(s seat) bool { return s.confirmed }) >= r.q.majority {
			r.win()
		}
	case last && r.fence > 0:
		r.lose(outcome{err: r.failure()})
	}
}

// counts says whether a seat has a vote that the fence covers. One that came when the
// fence was fixed may be larger, because its member knows of a lease whose fence is
// larger too: it is confirmed, and serves once a majority without it has the lease.
func (r *round) counts(s seat) bool {
	return s.state == grantedSeat && (r.fence == 0 || s.vote.fence <= r.fence)
}

// win takes the lease if enough of it is left.
func (r *round) win() {
	if err := r.q.mistake(); err != nil {
		r.lose(outcome{err: err})
		return
	}
	o := outcome{won: true, fence: r.fence, token: r.token}
	for _, s := range r.seats {
		if s.confirmed && r.counts(s) && (o.left == 0 || s.vote.pttl < o.left) {
			o.left = s.vote.pttl
		}
		o.time = max(o.time, s.vote.time)
	}
	if r.began.add(o.left-margin(o.left)).sub(r.q.c.clock.now()) < r.ttl/2 {
		r.lose(outcome{err: errLate})
		return
	}
	r.finish(o)
}

// lose gives back the votes that are there.
func (r *round) lose(o outcome) {
	if r.over {
		return
	}
	r.finish(o)
	r.q.leaves(r.token)
	for i := range r.seats {
		if r.seats[i].state == grantedSeat {
			r.giveBack(&r.seats[i])
		}
	}
}

func (r *round) finish(o outcome) {
	for _, s := range r.seats {
		if s.state == grantedSeat || s.state == heldSeat || s.state == closedSeat {
			o.ready = append(o.ready, s.m)
		}
	}
	r.over, r.outcome = true, o
	r.decided <- o
}

// giveBack gives one vote back at once.
func (r *round) giveBack(s *seat) { s.m.owe(leaveCall(r.keys, r.token, "", callLimit), false) }

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

var errNoMajority = errors.New("no majority of the members answered")

// settle is the end of a round, when every member has answered or has failed to.
func (r *round) settle() {
	var unsure []*member // of a lease, who may have voted later than they were asked to leave
	for _, s := range r.seats {
		switch {
		case r.outcome.won && s.state == failedSeat:
			unsure = append(unsure, s.m)
		case !r.outcome.won && (s.state == failedSeat || s.state == grantedSeat && s.err != nil):
			s.m.owe(leaveCall(r.keys, r.token, "", callLimit), true)
		}
		if r.outcome.won && r.member != "" && !s.left {
			s.m.owe(leaveCall(r.keys, r.q.c.newToken(), r.member, callLimit), false)
		}
	}
	if r.q.ends(r.token, unsure...) && r.outcome.won { // released meanwhile
		for _, m := range unsure {
			m.owe(leaveCall(r.keys, r.token, "", callLimit), true)
		}
	}
}
