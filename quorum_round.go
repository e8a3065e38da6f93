package zamok

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// round is one try to have a majority: one token, one vote of each member at most.
// Whoever brings a member's answer goes on with it, also when the caller has its own,
// until every member has answered: a vote that comes late is confirmed too, or is given
// back.
type round struct {
	q      *quorum
	back   context.Context //nolint:containedctx // of what goes on behind, until the round ends
	keys   []string        // of the lock
	tries  string          // what the tokens of all rounds of the attempt begin with
	token  string
	ttl    time.Duration
	ttlMS  string
	member string // the caller's entry in the queue
	block  bool
	limit  time.Duration

	began   instant
	propose string
	decided chan outcome

	mu      sync.Mutex // before a member's
	seats   []seat
	pending int
	patient *time.Timer // set when a majority has answered and nothing is decided
	fence   int64       // 0 while they vote
	over    bool        // it is decided
	outcome outcome
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

func (q *quorum) newRound(ctx context.Context, call driver.Call) *round {
	ms, _ := strconv.ParseInt(call.Args[1], 10, 64)
	tries := call.Args[0] + "."
	r := &round{
		q: q, back: q.behind(ctx), keys: call.Keys, tries: tries, token: tries + strconv.FormatUint(q.c.calls.Add(1), 36), ttl: time.Duration(ms) * time.Millisecond,
		ttlMS: call.Args[1], member: memberOf(call.Args), block: call.Args[4] == modeBlock, limit: call.Limit,
		began: q.c.clock.now(), propose: strconv.FormatInt(q.proposal(), 10), decided: make(chan outcome, 1), pending: len(q.members),
		seats: make([]seat, 0, len(q.members)),
	}
	for _, m := range q.members {
		r.seats = append(r.seats, seat{m: m})
	}
	return r
}

// hold plays the round and returns once it is decided.
func (r *round) hold(ctx context.Context) outcome {
	r.q.begins(r.token)
	for i := range r.seats {
		r.ask(i)
	}
	select {
	case o := <-r.decided:
		return o
	case <-ctx.Done():
		r.mu.Lock()
		r.lose(outcome{err: ctx.Err()})
		r.mu.Unlock()
		return <-r.decided
	}
}

// hears goes on with an answer.
func (r *round) hears(b ballot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending--
	r.take(b)
	r.decide(r.pending == 0)
	switch {
	case r.pending == 0:
		r.settle()
	case !r.over && r.patient == nil && r.answered() >= r.q.majority:
		r.patient = time.AfterFunc(r.q.patience(r.q.c.clock.now().sub(r.began)), r.hurry)
	}
}

// hurry decides without those that have not answered.
func (r *round) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decide(true)
}

// ask has one member vote.
func (r *round) ask(i int) {
	m := r.seats[i].m
	switch {
	case m.silent():
		r.hears(ballot{seat: i, err: errNotAsked, unasked: true})
	case m.known():
		r.vote(i)
	default:
		r.q.goes(func() {
			if err := m.look(r.back, r.limit); err != nil {
				r.hears(ballot{seat: i, err: err, unasked: true})
				return
			}
			r.vote(i)
		})
	}
}

func (r *round) vote(i int) {
	r.send(i, false, r.q.voteCall(r.keys, r.token, r.ttlMS, r.propose, r.limit))
}

func (r *round) send(i int, confirm bool, call driver.Call) {
	r.seats[i].m.send(request{r.back, []driver.Call{call}, func(results []driver.Result) {
		ans, err := answerOf(results[0])
		r.hears(ballot{seat: i, confirm: confirm, ans: ans, err: err})
	}})
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
			if !s.m.leaves(r.token) {
				r.giveBack(s)
			}
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
	last := r.fence
	if r.block {
		last += blockSize - 1
	}
	r.pending++
	r.send(i, true, confirmCall(r.keys, r.token, r.fence, last, r.member, r.limit))
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
	if r.patient != nil {
		r.patient.Stop()
	}
	r.over, r.outcome = true, o
	r.decided <- o
}

// giveBack gives one vote back at once.
func (r *round) giveBack(s *seat) { s.m.owe(leaveCall(r.keys, r.token, "", callLimit), false) }

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
