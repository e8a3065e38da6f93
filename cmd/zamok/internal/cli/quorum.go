package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// quorum has the connections to the members of a quorum. They connect when they are
// used, since not all members need to be there.
type quorum struct {
	*inspect.Quorum

	nodes   []zamok.Node
	clients []redis.UniversalClient
	targets []connect.Target
}

// newQuorum sends nothing.
func newQuorum(f *serverFlags, targets []connect.Target, origin string) (q *quorum, err error) {
	q = &quorum{targets: targets}
	defer func() {
		if err != nil {
			q.close()
		}
	}()
	for _, t := range targets {
		if err := checkMember(t); err != nil {
			return q, ofURL(err, origin)
		}
		client, err := connect.Dial(t, f.tls, time.Duration(f.timeout))
		if err != nil {
			return q, err
		}
		q.clients = append(q.clients, client)
		q.nodes = append(q.nodes, zamok.Node{Name: t.Addrs[0], Driver: zamokgoredis.New(client)})
	}
	q.Quorum, err = inspect.NewQuorum(q.nodes, f.prefix)
	var bad *zamok.ConfigError
	if errors.As(err, &bad) && bad.Field == "nodes" {
		return q, ofURL(usage("write --quorum --redis URL1 --redis URL2 --redis URL3, all members and alike on all hosts", "the members of the quorum: %w", bad.Err), origin)
	}
	return q, err
}

// checkMember refuses what has no name that is the same for all clients, or says
// nothing of which database is meant: two clients with different ones would have
// different locks, and both a majority.
func checkMember(t connect.Target) error {
	switch {
	case t.Master != "":
		return usage("give each member's own address; behind a Sentinel stand a server and its copies, which is one member at most", "%s cannot be a member of a quorum", t)
	case t.Cluster:
		return usage("give each member's own address; what a cluster's nodes have they share", "%s cannot be a member of a quorum", t)
	case t.Socket != "":
		return usage("a member is known by its host and port, to all clients alike: write redis://HOST:PORT", "%s cannot be a member of a quorum", t)
	case t.DB != 0:
		return usage("a member is known by its host and port, and its database is 0: for several applications there is --prefix", "%s cannot be a member of a quorum", t)
	}
	return nil
}

// String names the members.
func (q *quorum) String() string {
	var all []string
	for _, t := range q.targets {
		all = append(all, t.String())
	}
	return strings.Join(all, " ")
}

func (q *quorum) close() {
	for _, c := range q.clients {
		go c.Close() // a hung handshake holds it up to its own limit
	}
}

// news is what came of one try to reach a member.
type news struct {
	member int
	err    error
	final  bool // it is not tried again
}

// errNotYet is what is known of a member that has said nothing.
var errNotYet = errors.New("no answer so far")

// await returns when a majority has answered, and warns of the others, for which it
// waits a little longer.
func (q *quorum) await(ctx context.Context, talk *talk, within time.Duration) error {
	trying, stop := context.WithTimeout(ctx, within)
	defer stop()
	came := make(chan news)
	said := make([]error, len(q.clients)) // of each the last; nil: it has answered
	for n := range q.clients {
		said[n] = errNotYet
		go q.reach(trying, n, within, came)
	}
	answered, refused, patience := 0, 0, (<-chan time.Time)(nil)
	for began := time.Now(); answered < q.Majority() || slices.Contains(said, errNotYet); {
		select {
		case c := <-came:
			said[c.member] = c.err
			if c.final {
				refused++
			}
			if refused > len(said)-q.Majority() {
				return c.err
			}
			if c.err != nil {
				continue
			}
			if answered++; answered == q.Majority() {
				patience = time.After(2*time.Since(began) + 200*time.Millisecond)
			}
		case <-patience:
			q.warn(talk, said)
			return nil
		case <-trying.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return q.tooFew(answered, said, within)
		}
	}
	q.warn(talk, said)
	return nil
}

// reach tries until the member answers, refuses, or ctx ends.
func (q *quorum) reach(ctx context.Context, n int, within time.Duration, came chan<- news) {
	for {
		err := connect.Await(ctx, q.clients[n], q.targets[n], within, true)
		var refused *connect.RefusedError
		var setup *connect.SetupError
		c := news{n, err, errors.As(err, &refused) || errors.As(err, &setup)}
		select {
		case came <- c:
		case <-ctx.Done():
		}
		if err == nil || c.final {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

func (q *quorum) warn(talk *talk, said []error) {
	for n, err := range said {
		if err != nil {
			talk.say("warning: member %s of the quorum: %s", q.nodes[n].Name, cause(err))
		}
	}
}

func (q *quorum) tooFew(answered int, said []error, within time.Duration) error {
	var list []string
	for n, err := range said {
		if err != nil {
			list = append(list, fmt.Sprintf("%s: %s", q.nodes[n].Name, cause(err)))
		}
	}
	return &failure{
		code: exit.Unavailable,
		err:  fmt.Errorf("%d of the %d members of the quorum answered within %v, and a majority is %d: %s", answered, len(said), within, q.Majority(), strings.Join(list, "; ")),
		hint: "check that they run and can be reached from here; `zamok doctor --quorum` looks at each",
	}
}

// cause is the error in words, without the address, which is told beside it.
func cause(err error) string {
	var unreachable *connect.UnreachableError
	var number syscall.Errno
	var said *driver.ServerError
	switch {
	case errors.As(err, &number): // connection refused, no route to host
		return number.Error()
	case errors.As(err, &said):
		return said.Text
	case errors.As(err, &unreachable):
		return unreachable.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it does not answer"
	}
	return plain(err)
}
