package zamok

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// mostTies is how often one call tries again when nobody had a majority.
const mostTies = 8

// acquire is the script acquire on a quorum. A lease that is granted has a token of its
// own, which comes in the place of the ticket.
func (q *quorum) acquire(ctx context.Context, call driver.Call) (any, error) {
	began := q.c.clock.now()
	var stands answer
	inLine := false
	for ties := 0; ; ties++ {
		o := q.newRound(ctx, call).hold(ctx)
		switch {
		case o.won:
			place := int64(0)
			if call.Args[2] != "" {
				place = grantedBefore // it stood in a queue, and was granted by asking
			}
			return q.reply(answer{status: "granted", fence: o.fence, pttl: o.left, time: o.time, place: place}, o.token), nil
		case o.err != nil:
			return nil, o.err
		}
		// Who waits stands in the queue before it tries again: the first of them has the
		// short pauses, the others wait to be told.
		if call.Args[2] != "" && !inLine {
			var err error
			if stands, err = q.line(ctx, call, o.ready); err != nil {
				return nil, err
			}
			inLine = true
			stands.fence = 1 // that it stood elsewhere before, or was told to try, is no message that was missed
			call.Args = slices.Clone(call.Args)
			call.Args[3] = stands.extra.(string)
			if stands.status == "free" && !o.tie { // it was released meanwhile
				continue
			}
		}
		first := call.Args[2] == "" || stands.place <= 1
		if o.tie && first && ties < mostTies && ctx.Err() == nil {
			took := max(q.c.clock.now().sub(began)/time.Duration(ties+1), time.Millisecond)
			sleepOr(ctx, q.c.closing, 1+rand.N(min(took<<min(ties, 4), 50*time.Millisecond)))
			continue
		}
		if o.holder.holder == "" && call.Args[2] != "" {
			o.holder = o.own // who waits goes on with it
		}
		if o.holder.holder == "" {
			return nil, errTied
		}
		if o.tie {
			o.holder.pttl = 50*time.Millisecond + rand.N(200*time.Millisecond)
		}
		if call.Args[2] == "" {
			o.holder.status = "held"
			return q.reply(o.holder, "0"), nil
		}
		stands.status, stands.pttl, stands.holder = "waits", o.holder.pttl, o.holder.holder
		return q.reply(stands, stands.extra), nil
	}
}

// reply is an answer as a script gives it.
func (q *quorum) reply(a answer, extra any) any {
	ms := int64(a.pttl / time.Millisecond)
	return []any{a.status, strconv.FormatInt(a.fence, 10), ms, a.time, a.place, a.ears, a.holder, extra}
}

// line joins the queue of the lock, at the first of its members that answers: which one
// is first depends on the name, and those come before others that the client hears.
func (q *quorum) line(ctx context.Context, call driver.Call, ready []*member) (answer, error) {
	h := fnv.New32a()
	h.Write([]byte(call.Keys[0]))
	start := int(h.Sum32() % uint32(len(q.members)))
	order := append(slices.Clone(q.members[start:]), q.members[:start]...)
	slices.SortStableFunc(order, func(a, b *member) int { return a.rank(ready) - b.rank(ready) })
	var errs []error
	for _, m := range order {
		ans, err := m.line(ctx, call)
		if err == nil {
			return ans, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return answer{}, q.failure(errs)
}

// line joins the queue at one member. What it did not answer in time is taken back.
func (m *member) line(ctx context.Context, call driver.Call) (answer, error) {
	type result struct {
		ans answer
		err error
	}
	done := make(chan result, 1)
	line := driver.Call{Script: lua.Line, Keys: call.Keys[:2:2], Args: slices.Clone(call.Args[:5]), Limit: call.Limit}
	m.q.goes(func() {
		ans, err := m.eval(m.q.behind(ctx), line)
		done <- result{ans, err}
	})
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if _, ok := r.ans.extra.(string); r.err == nil && !ok {
		r.err = badReply(r.ans)
	}
	var said *driver.ServerError
	if r.err != nil && !errors.As(r.err, &said) {
		m.owe(leaveCall(call.Keys, m.q.c.newToken(), memberOf(call.Args), callLimit), true)
	}
	return r.ans, r.err
}

// memberOf is the entry in a queue that one who asks with these arguments has.
func memberOf(args []string) string {
	if args[2] == "" {
		return ""
	}
	return args[4] + "|" + args[0] + "|" + args[1] + "|" + args[2]
}

// rank orders the members for a queue.
func (m *member) rank(ready []*member) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	rank := 0
	if m.hears == 0 {
		rank = 1
	}
	if !slices.Contains(ready, m) {
		rank += 2
	}
	return rank
}

// nth is the n-th smallest of them.
func nth(all []time.Duration, n int) time.Duration {
	if len(all) < n {
		return longestLook
	}
	slices.Sort(all)
	return all[n-1]
}

func (q *quorum) voteCall(keys []string, token, ttlMS, propose string, limit time.Duration) driver.Call {
	return driver.Call{Script: lua.Vote, Keys: []string{keys[0], keys[1], keys[2], q.node}, Args: []string{token, ttlMS, q.terms, propose}, Limit: limit}
}

func confirmCall(keys []string, token string, fence, last int64, member string, limit time.Duration) driver.Call {
	return driver.Call{Script: lua.Confirm, Keys: keys[:3:3], Args: []string{token, strconv.FormatInt(fence, 10), strconv.FormatInt(last, 10), member}, Limit: limit}
}

func leaveCall(keys []string, token, member string, limit time.Duration) driver.Call {
	return driver.Call{Script: lua.Leave, Keys: keys[:2:2], Args: []string{token, member, "0"}, Limit: limit}
}
