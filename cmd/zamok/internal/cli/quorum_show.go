package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok/inspect"
)

// lookingAtAll looks at the members of a quorum, whether they answer or not, within the
// time in which they are to be reached.
func (a *app) lookingAtAll(ctx context.Context, f *serverFlags, look func(context.Context, *quorum) error) error {
	return a.withMembers(ctx, f, func(ctx context.Context, q *quorum) error {
		within, stop := context.WithTimeout(ctx, time.Duration(f.timeout))
		defer stop()
		err := look(within, q)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
}

// withMembers has do done with the members of a quorum, until a signal comes.
func (a *app) withMembers(ctx context.Context, f *serverFlags, do func(context.Context, *quorum) error) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	targets, origin, err := a.settings(f)
	if err != nil {
		return err
	}
	if f.quarantine == 0 {
		f.quarantine = defaultQuarantine
	}
	q, err := newQuorum(f, targets, origin)
	if err != nil {
		return unprefixed(err)
	}
	defer q.close()
	return unprefixed(do(signals.waiting, q))
}

// stateOf says in words what a member does.
func stateOf(m inspect.Member) string {
	switch m.State {
	case inspect.MemberServes:
		return "serves"
	case inspect.MemberQuarantine:
		if m.Moved {
			return fmt.Sprintf("was restarted or failed over: quarantine for %v from its next use on", m.Quarantine)
		}
		return fmt.Sprintf("quarantine for %s: it may have lost a vote, and gives none", ago(m.Left))
	case inspect.MemberNew:
		return "new, or wiped: a quarantine begins at its first use"
	case inspect.MemberOtherTerms:
		if m.Members == nil {
			return "is no member of a quorum, but a server of its own with a quarantine"
		}
		return "other members: " + strings.Join(m.Members, ", ")
	case inspect.MemberReplica:
		return "a replica of " + m.Twin + ", which is no member"
	case inspect.MemberTwice:
		return "the same server as " + m.Twin
	}
	return cause(m.Err)
}
