package zamok

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// inquiry is one EvalAll: the same calls go to every member, and each call is decided
// by what a majority answers.
type inquiry struct {
	q       *quorum
	back    context.Context //nolint:containedctx // of one inquiry, which ends with it
	calls   []driver.Call   // as the members are sent them
	began   instant
	decided chan []driver.Result

	mu       sync.Mutex // before a member's
	polls    []poll
	pending  int         // members that have not answered
	answered int         // those that answered all calls
	patient  *time.Timer // set when these are a majority, and calls are open
	results  []driver.Result
	open     int // calls that are not decided
}

// poll is what the members said to one call.
type poll struct {
	heard   []heard
	failed  []error
	over    bool
	release string // the token, of a release
	raise   string // the ms, of a renewal that raises
	ready   bool   // of a release: a majority has answered, so whoever waits is told
}

type heard struct {
	m     *member
	ans   answer
	reply any
}

// EvalAll implements driver.Driver.
func (q *quorum) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	n := &inquiry{
		q: q, back: q.behind(ctx), calls: make([]driver.Call, len(calls)), polls: make([]poll, len(calls)),
		results: make([]driver.Result, len(calls)), open: len(calls), pending: len(q.members),
		began: q.c.clock.now(), decided: make(chan []driver.Result, 1),
	}
	for i, call := range calls {
		call.Keys, call.Args = slices.Clone(call.Keys), slices.Clone(call.Args)
		switch call.Script {
		case lua.Release:
			n.polls[i].release = call.Args[0]
			for _, m := range q.leaves(call.Args[0]) {
				m.owe(leaveCall(call.Keys, call.Args[0], "", callLimit), true)
			}
			call = leaveCall(call.Keys, call.Args[0], call.Args[1], call.Limit)
		case lua.Renew:
			if call.Args[1] != "0" { // so it may fill the lease in somewhere, also when it was released
				n.polls[i].raise = call.Args[1]
				q.begins(call.Args[0])
			}
		}
		n.calls[i] = call
	}
	for _, m := range q.members {
		n.ask(m)
	}
	select {
	case results := <-n.decided:
		return results
	case <-ctx.Done():
		select {
		case results := <-n.decided:
			return results
		default:
		}
		results := make([]driver.Result, len(calls))
		for i := range results {
			results[i].Err = ctx.Err()
		}
		return results
	}
}

// hears goes on with what a member answered.
func (n *inquiry) hears(m *member, results []driver.Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending--
	for i := range n.calls {
		n.take(i, m, results[i])
	}
	n.decide(n.pending == 0)
	if !slices.ContainsFunc(results, func(r driver.Result) bool { return r.Err != nil }) {
		n.answered++
	}
	switch {
	case n.pending == 0:
		for i, p := range n.polls {
			if p.raise != "" {
				n.q.ends(n.calls[i].Args[0])
			}
		}
	case n.open > 0 && n.patient == nil && n.answered == n.q.majority:
		n.patient = time.AfterFunc(n.q.patience(n.q.c.clock.now().sub(n.began)), n.hurry)
	}
}

// hurry decides without those that have not answered.
func (n *inquiry) hurry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.decide(true)
}

// ask sends the calls to one member, but releases not to one that does not answer: they
// would only heap up there, and are owed to it.
func (n *inquiry) ask(m *member) {
	other := func(c driver.Call) bool { return c.Script != lua.Leave }
	if slices.ContainsFunc(n.calls, other) || !m.silent() {
		m.send(request{n.back, n.calls, func(results []driver.Result) { n.hears(m, results) }})
		return
	}
	results := make([]driver.Result, len(n.calls))
	for i := range results {
		results[i].Err = errNotAsked
	}
	n.hears(m, results)
}

// take notes an answer, and does behind what follows from it.
func (n *inquiry) take(i int, m *member, r driver.Result) {
	p, call := &n.polls[i], n.calls[i]
	h := heard{m: m, reply: r.Reply}
	err := r.Err
	if call.Script == lua.Leave || call.Script == lua.Renew {
		h.ans, err = answerOf(r)
		if call.Script == lua.Renew {
			h.ans, err = aboutLease(h.ans, err)
		}
	}
	if err != nil {
		p.failed = append(p.failed, err)
		if p.release != "" {
			m.owe(leaveCall(call.Keys, call.Args[0], call.Args[1], callLimit), false)
		}
		return
	}
	p.heard = append(p.heard, h)
	if p.ready {
		n.tell(call, h, len(p.with("released")) > 0)
	}
	if p.over && p.raise != "" {
		n.fill(i, h)
	}
}

// decide ends the calls of which the outcome is known, and all when nobody is waited
// for any longer.
func (n *inquiry) decide(last bool) {
	for i := range n.polls {
		p := &n.polls[i]
		if p.over {
			continue
		}
		reply, err := n.verdict(p, n.calls[i], last)
		if reply == nil && err == nil && !last {
			continue
		}
		p.over = true
		n.results[i] = driver.Result{Reply: reply, Err: err}
		n.open--
		if p.raise != "" && p.possible(n) {
			for _, h := range p.heard {
				n.fill(i, h)
			}
		}
		if p.release != "" {
			p.ready = true
			for _, h := range p.heard {
				n.tell(n.calls[i], h, len(p.with("released")) > 0)
			}
		}
	}
	if n.open == 0 {
		n.open = -1
		if n.patient != nil {
			n.patient.Stop()
		}
		n.decided <- n.results
	}
}

// verdict is the reply to a call, or nil when that is not known yet.
func (n *inquiry) verdict(p *poll, call driver.Call, last bool) (any, error) {
	if len(p.heard) < n.q.majority && len(p.heard)+len(p.failed) < len(n.q.members) && !last {
		return nil, nil
	}
	switch call.Script {
	case lua.Renew:
		return n.renewed(p, last)
	case lua.Leave:
		return n.released(p, last)
	}
	if len(p.heard) < n.q.majority {
		return nil, n.q.failure(p.failed)
	}
	if call.Script == lua.Inspect {
		return p.remains(), nil
	}
	for _, h := range p.heard { // of what a client says of itself, a member that was down knows nothing
		if text, _ := h.reply.(string); text != "" {
			return text, nil
		}
	}
	return "", nil
}

// remains is the reply to an autopsy: the last of the fences that the members know, some of
// whom may have had no part in the lease, and the last lease that was broken.
func (p *poll) remains() any {
	last, broken, note := int64(-1), int64(-1), ""
	for _, h := range p.heard {
		fence, text := afterwards(driver.Result{Reply: h.reply})
		last = max(last, fence)
		if _, of := parseValue(text); of > broken {
			broken, note = of, text
		}
	}
	return []any{"", strconv.FormatInt(last, 10), int64(-2), int64(0), int64(0), note}
}

func (p *poll) with(status string) (all []heard) {
	for _, h := range p.heard {
		if h.ans.status == status {
			all = append(all, h)
		}
	}
	return all
}

// possible says whether a majority may still have the lease's vote.
func (p *poll) possible(n *inquiry) bool {
	return len(n.q.members)-len(p.with("absent"))-len(p.with("other")) >= n.q.majority
}

// renewed is the reply to a renewal: the lease lasts until the majority-th last of its
// deadlines, and is lost when there can be no majority for it. Anything else says
// nothing about it.
func (n *inquiry) renewed(p *poll, last bool) (any, error) {
	if b := p.with("broken"); len(b) > 0 {
		return n.q.reply(b[0].ans, "0"), nil
	}
	yes := p.with("renewed")
	switch {
	case len(yes) >= n.q.majority:
		slices.SortFunc(yes, func(a, b heard) int { return cmp.Compare(b.ans.pttl, a.ans.pttl) })
		return n.q.reply(yes[n.q.majority-1].ans, "0"), nil
	case !p.possible(n):
		return n.q.reply(p.gone(n), "0"), nil
	case last:
		return nil, errors.Join(errNoMajority, n.q.failure(p.failed))
	}
	return nil, nil
}

// released is the reply to a release, which is one of a lease unless a majority had
// nothing of it.
func (n *inquiry) released(p *poll, last bool) (any, error) {
	if len(p.heard) < n.q.majority {
		if last {
			return nil, n.q.failure(p.failed)
		}
		return nil, nil
	}
	yes := p.with("released")
	switch {
	case len(yes) >= n.q.majority, len(yes) > 0 && last && p.possible(n):
		return n.q.reply(yes[0].ans, "0"), nil
	case len(yes) > 0 && p.possible(n):
		return nil, nil
	}
	if p.possible(n) { // none of them is an answer of a release
		return nil, badReply(p.heard[0].reply)
	}
	a := p.gone(n)
	if a.status == "absent" && len(p.with("other")) > 0 && !last {
		return nil, nil // who has not answered may have that other's vote too: then it was taken
	}
	for _, h := range p.heard {
		a.place = max(a.place, h.ans.place)
	}
	return n.q.reply(a, "0"), nil
}

// gone is what stands for all that the members have instead of a lease's vote, of which
// there can be no majority any more: that of the member without which there could be one.
// Those that others voted at first come first. So a vote that was another's long before, at
// a member that never voted for the lease, does not say who took it, or that anybody did.
func (p *poll) gone(n *inquiry) answer {
	fence := func(h heard) int64 {
		_, f := parseValue(h.ans.holder)
		return f
	}
	all := p.with("other")
	slices.SortFunc(all, func(a, b heard) int { return cmp.Compare(fence(a), fence(b)) })
	all = append(all, p.with("absent")...)
	return all[len(n.q.members)-n.q.majority].ans
}

// tell has a member tell the first who waits there to try, once a majority has given up
// what it had.
func (n *inquiry) tell(call driver.Call, h heard, released bool) {
	if h.ans.ears == 0 || !released {
		return
	}
	call = leaveCall(call.Keys, call.Args[0], "", callLimit)
	call.Args[2] = "1"
	n.q.goes(func() { _, _ = h.m.eval(n.back, call) })
}

// fill has a member that has nothing of a lease vote for it again, and one that has
// another fence take that of the others; unless the lease was released meanwhile, or
// its holder is asked to stop: a vote without that mark would outlast those that have it.
func (n *inquiry) fill(i int, h heard) {
	p, call := &n.polls[i], n.calls[i]
	fence, absent := p.fence(), h.ans.status == "absent"
	if fence == 0 || len(p.with("broken")) > 0 || !absent && (h.ans.status != "renewed" || h.ans.fence == fence) {
		return
	}
	set, err := keys.ForKey(n.q.c.cfg.Prefix, "filled", call.Keys[0])
	if err != nil {
		return
	}
	if left := n.q.begins(call.Args[0]); left {
		n.q.ends(call.Args[0])
		return
	}
	n.q.goes(func() { n.q.fill(n.back, h.m, set.Main, call, fence, absent) })
}

// fence is what most of those who have the lease call its fence, of two that as many do
// the larger.
func (p *poll) fence() (fence int64) {
	votes := make(map[int64]int)
	for _, h := range p.with("renewed") {
		f := h.ans.fence
		if votes[f]++; votes[f] > votes[fence] || votes[f] == votes[fence] && f > fence {
			fence = f
		}
	}
	return fence
}

func (q *quorum) fill(ctx context.Context, m *member, keys []string, renewal driver.Call, fence int64, vote bool) {
	token := renewal.Args[0]
	granted := !vote
	var unsure []*member
	if vote && m.look(ctx, renewal.Limit) == nil {
		ans, err := m.eval(ctx, q.voteCall(keys, token, renewal.Args[1], "0", renewal.Limit))
		granted = err == nil && ans.status == "granted"
		if err != nil {
			unsure = append(unsure, m)
		}
	}
	if granted {
		_, _ = m.eval(ctx, confirmCall(keys, token, fence, fence+blockSize-1, "", renewal.Limit))
	}
	if q.ends(token, unsure...) {
		m.owe(leaveCall(keys, token, "", callLimit), len(unsure) > 0)
	}
}
