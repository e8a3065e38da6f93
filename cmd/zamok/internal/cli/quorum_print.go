package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

func (a *app) showQuorum(ctx context.Context, q *quorum, lock *oneLock, asJSON bool) error {
	l, err := lock.readAll(ctx, q)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(jsonOfQuorum(l))
	} else {
		err = a.print(func(w io.Writer) { printQuorumLock(w, a.pageWidth(), l) })
	}
	switch {
	case err != nil:
		return err
	case l.State == inspect.QuorumUnknown:
		return errUnknown
	case l.State == inspect.QuorumFree:
		a.code = exit.Failed
	}
	return nil
}

// readAll is read at all members of a quorum.
func (o *oneLock) readAll(ctx context.Context, q *quorum) (inspect.QuorumLock, error) {
	if o.key == "" {
		if strings.HasPrefix(o.name, semaphoreMark) {
			return inspect.QuorumLock{}, usage("its members keep no permits", "a quorum has no semaphores")
		}
		return q.Show(ctx, o.name)
	}
	l, err := q.ShowKey(ctx, o.key)
	if o.name != "" {
		l.Name = o.name
	}
	return l, err
}

var errUnknown = &failure{code: exit.Unavailable, err: errors.New("who has the lock depends on members that cannot be asked"), hint: "check that they run and can be reached from here; `zamok doctor --quorum` looks at each"}

// asOne is the lock as one server would show it, with who has it, or may have it.
func asOne(l inspect.QuorumLock) inspect.Lock {
	one := inspect.Lock{Kind: inspect.KindLock, Name: l.Name, Key: l.Key, Left: l.Holder.Left, NoTTL: l.NoTTL, Waiters: l.Waiters, Waiting: len(l.Waiters)}
	if l.Got > 0 {
		one.Held, one.Holding, one.Holders = true, 1, []inspect.Holder{l.Holder}
	}
	return one
}

func printQuorumLock(w io.Writer, page int, l inspect.QuorumLock) {
	f := facts{w}
	one := asOne(l)
	f.line("lock", "%s", visible(l.Name))
	if l.Name != l.Key && !isNamedKey(one) {
		f.line("key", "%s", visible(l.Key))
	}
	switch {
	case l.State == inspect.QuorumHeld:
		f.holder(one)
		f.line("votes", "%d of %d members; a majority is %d", l.Got, len(l.Votes), l.Majority)
	case l.State == inspect.QuorumUnknown && l.Got > 0:
		f.line("state", "unknown: perhaps held by %s, who has %d of the %d votes that it needs", holder(l.Holder), l.Got, l.Majority)
	case l.State == inspect.QuorumUnknown:
		f.line("state", "unknown: too few members can be asked")
	default:
		f.line("state", "free")
	}
	if l.Serving < l.Majority {
		f.line("warning", "nobody is granted anything: %d of %d members serve; a majority is %d", l.Serving, len(l.Votes), l.Majority)
	}
	f.line("waiting", "%d", len(l.Waiters))
	rows := [][]string{{"MEMBER", "VOTE", "LEFT", "FENCE", "STATE"}}
	for _, v := range l.Votes {
		rows = append(rows, voteRow(v))
	}
	fmt.Fprintln(w)
	table(w, page, rows, 1, 4)
	printWaiters(w, page, one)
}

func voteRow(v inspect.Vote) []string {
	row := []string{v.Name, "none", "-", "-", visible(stateOf(v.Member))}
	h := v.Lock.First()
	switch {
	case !v.Votes():
		row[1] = "?"
	case v.Lock.Held:
		row[1], row[2] = holder(h), ago(v.Lock.Left)
		if v.Lock.NoTTL {
			row[2] = "no TTL"
		}
		if h.Fence > 0 {
			row[3] = strconv.FormatInt(h.Fence, 10)
		}
	}
	return row
}

// The JSON form. Fields are added, never renamed or taken away.
type jsonQuorumLock struct {
	Name     string       `json:"name"`
	Key      string       `json:"key"`
	State    string       `json:"state"` // held, free, unknown
	Held     bool         `json:"held"`
	Votes    int          `json:"votes"` // that the holder has
	Majority int          `json:"majority"`
	Serving  int          `json:"serving"` // members that grant locks now
	Holder   *jsonHolding `json:"holder"`  // null when there is none; when the state is unknown, who may be it
	LeftMS   int64        `json:"left_ms"` // until it has no majority any more, if nothing is renewed
	NoTTL    bool         `json:"no_ttl"`
	Members  []jsonVote   `json:"members"`
	Waiters  []jsonWaiter `json:"waiters"`
}

type jsonVote struct {
	Member       string       `json:"member"`
	State        string       `json:"state"`         // serves, quarantine, new, other terms, replica, same server, unreachable
	Why          string       `json:"why"`           // the same in words
	QuarantineMS int64        `json:"quarantine_ms"` // what is left of it
	Vote         *jsonHolding `json:"vote"`          // null when nobody has it
	LeftMS       int64        `json:"left_ms"`
	NoTTL        bool         `json:"no_ttl"`
}

func jsonOfQuorum(l inspect.QuorumLock) jsonQuorumLock {
	j := jsonQuorumLock{
		Name: l.Name, Key: l.Key, State: string(l.State), Held: l.State == inspect.QuorumHeld, Votes: l.Got, Majority: l.Majority, Serving: l.Serving,
		LeftMS: ms(l.Holder.Left), NoTTL: l.NoTTL, Members: []jsonVote{}, Waiters: []jsonWaiter{},
	}
	if l.Got > 0 {
		h := jsonHoldingOf(l.Holder)
		j.Holder = &h
	}
	for _, v := range l.Votes {
		m := jsonVote{Member: v.Name, State: string(v.State), Why: stateOf(v.Member), QuarantineMS: ms(v.Member.Left), LeftMS: ms(v.Lock.Left), NoTTL: v.Lock.NoTTL}
		if v.Lock.Held {
			h := jsonHoldingOf(v.Lock.First())
			m.Vote = &h
		}
		j.Members = append(j.Members, m)
	}
	for _, w := range l.Waiters {
		j.Waiters = append(j.Waiters, jsonWaiterOf(inspect.Lock{}, w))
	}
	return j
}
