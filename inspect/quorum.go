package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
)

// Quorum looks at the members of a quorum (zamok.NewQuorum), at all of them at the
// same time, so that one that hangs costs no more than its own limit of 5 s. It may be
// used from many goroutines at once.
type Quorum struct {
	names   []string
	drivers []driver.Driver
	in      []*Inspector
}

// NewQuorum returns a Quorum for the locks of clients with these members and this
// prefix (zamok.Config.Prefix). It sends nothing. The error is a *zamok.ConfigError,
// for the same reasons as that of zamok.NewQuorum.
func NewQuorum(nodes []zamok.Node, prefix string) (*Quorum, error) {
	c, err := zamok.NewQuorum(nodes, &zamok.Config{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	q := &Quorum{}
	for _, n := range nodes {
		in, err := New(n.Driver, prefix)
		if err != nil {
			return nil, err
		}
		q.names, q.drivers, q.in = append(q.names, n.Name), append(q.drivers, n.Driver), append(q.in, in)
	}
	return q, nil
}

// Majority is how many members decide.
func (q *Quorum) Majority() int { return len(q.names)/2 + 1 }

// MemberState is whether a member takes part.
type MemberState string

// The states.
const (
	MemberServes      MemberState = "serves"
	MemberQuarantine  MemberState = "quarantine"  // it may have lost a lease, and votes for nobody until Left is over
	MemberNew         MemberState = "new"         // nobody has used it: the quarantine begins when somebody does
	MemberOtherTerms  MemberState = "other terms" // it was told other members, and refuses
	MemberReplica     MemberState = "replica"     // so it is no server of its own, and has no vote
	MemberTwice       MemberState = "same server" // as a member that is named before it, and has no vote
	MemberUnreachable MemberState = "unreachable" // or it refuses to be asked: Err
)

// Member is what a server of a quorum says of itself.
type Member struct {
	Node

	Name  string
	State MemberState
	// Twin is the name of the member that is the same server, or the address of the
	// primary of which it is a replica.
	Twin string
	// Empty: it has no key at all. Known of a MemberNew only.
	Empty bool
	// Err is why a MemberUnreachable could not be asked.
	Err error
}

// Votes says whether the member counts: it can be asked, and is a server of its own.
func (m Member) Votes() bool {
	return m.State != MemberUnreachable && m.State != MemberReplica && m.State != MemberTwice && m.State != MemberOtherTerms
}

// Members looks at all, in the order of NewQuorum. It needs the right to run INFO. What
// cannot be asked is MemberUnreachable, so there is no error.
func (q *Quorum) Members(ctx context.Context) []Member {
	all := make([]Member, len(q.in))
	q.each(func(n int) { all[n] = q.member(ctx, n) })
	for n := range all {
		all[n].compare(all[:n])
	}
	return all
}

// compare finds the same server among those that are named before.
func (m *Member) compare(before []Member) {
	for _, b := range before {
		if m.RunID != "" && m.RunID == b.RunID {
			m.State, m.Twin = MemberTwice, b.Name
			return
		}
	}
}

// each calls f for all members at the same time.
func (q *Quorum) each(f func(n int)) {
	var all sync.WaitGroup
	for n := range q.in {
		all.Go(func() { f(n) })
	}
	all.Wait()
}

func (q *Quorum) member(ctx context.Context, n int) Member {
	m := Member{Name: q.names[n]}
	away := func(err error) Member {
		m.State, m.Err = MemberUnreachable, because(ctx, err)
		return m
	}
	reply, err := q.drivers[n].Do(ctx, limit, "INFO")
	if err != nil {
		return away(err)
	}
	info := infoFields(reply)
	m.RunID = info["run_id"]
	if info["role"] == "slave" {
		m.State, m.Twin = MemberReplica, info["master_host"]+":"+info["master_port"]
		return m
	}
	node, err := q.in[n].Node(ctx)
	if err != nil {
		return away(err)
	}
	node.RunID = m.RunID
	m.Node = node
	switch {
	case m.Quarantine == 0:
		m.State = MemberNew
		reply, err = q.drivers[n].Do(ctx, limit, "DBSIZE")
		m.Empty = err == nil && reply == int64(0)
	case !slices.Equal(m.Members, slices.Sorted(slices.Values(q.names))):
		m.State = MemberOtherTerms
	case m.Moved || m.Left > 0:
		m.State = MemberQuarantine
	default:
		m.State = MemberServes
	}
	return m
}

// infoFields reads the lines name:value of a reply of INFO.
func infoFields(reply any) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(reply)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Stamp says of servers that are all new and empty that they are the members of a
// quorum with this longest lease (zamok.Config.Quarantine), and may serve at once: the
// quarantine that would begin at their first use is then spared. Only who knows that no
// client has ever held anything there may say so. When they all say that they are, with
// these terms, nothing is changed, and that is no error.
//
// One that is empty beside others that are not may be a member that has lost its data,
// or stands in the place of one: it must not serve before its quarantine is over, which
// begins by itself. So the error is ErrUsed unless all are new, and nothing was changed;
// the members say why. It is a *zamok.ConfigError for a bad time, and wraps the
// driver's when one could not be stamped: those without a stamp are MemberNew then, and
// have their quarantine.
func (q *Quorum) Stamp(ctx context.Context, longest time.Duration) ([]Member, error) {
	all := q.Members(ctx)
	fresh, stand := 0, 0
	for _, m := range all {
		switch {
		case m.State == MemberUnreachable:
			return all, fmt.Errorf("inspect: member %s: %w", m.Name, m.Err)
		case m.State == MemberNew && m.Empty:
			fresh++
		case m.State == MemberServes && m.Quarantine == longest:
			stand++
		}
	}
	switch {
	case stand == len(all):
		return all, nil
	case fresh < len(all):
		return all, ErrUsed
	}
	errs := make([]error, len(all))
	q.each(func(n int) {
		node, err := q.in[n].Stamp(ctx, longest, q.names)
		if err != nil {
			errs[n] = fmt.Errorf("inspect: member %s: %w", q.names[n], err)
			return
		}
		all[n].Node, all[n].State, all[n].Empty = node, MemberServes, false
	})
	return all, errors.Join(errs...)
}
