package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// breakable is where a lock is broken: at one server, or at the members of a quorum.
type breakable interface {
	read(ctx context.Context) (inspect.Lock, error)
	print(w io.Writer, page int) // what was read
	end(ctx context.Context, c *inspect.BreakConfig) (inspect.Broken, error)
}

type atServer struct {
	lock *oneLock
	in   *inspect.Inspector
	seen inspect.Lock
}

func (s *atServer) read(ctx context.Context) (l inspect.Lock, err error) {
	l, err = s.lock.read(ctx, s.in)
	s.seen = l
	return l, err
}

func (s *atServer) print(w io.Writer, page int) { printLock(w, page, s.seen) }

func (s *atServer) end(ctx context.Context, c *inspect.BreakConfig) (inspect.Broken, error) {
	return s.in.Break(ctx, s.seen, c)
}

type atMembers struct {
	lock   *oneLock
	q      *quorum
	within time.Duration // for one look
	seen   inspect.QuorumLock
}

// read is an error when nobody can say who has the lock: that it is free would be a guess.
func (m *atMembers) read(ctx context.Context) (inspect.Lock, error) {
	within, stop := context.WithTimeout(ctx, m.within)
	defer stop()
	l, err := m.lock.readAll(within, m.q)
	m.seen = l
	if err == nil && l.State == inspect.QuorumUnknown && l.Got == 0 {
		err = errUnknown
	}
	return asOne(l), err
}

func (m *atMembers) print(w io.Writer, page int) { printQuorumLock(w, page, m.seen) }

func (m *atMembers) end(ctx context.Context, c *inspect.BreakConfig) (inspect.Broken, error) {
	b, err := m.q.Break(ctx, m.seen, c)
	if err != nil && ctx.Err() == nil && !errors.Is(err, inspect.ErrChanged) && !errors.Is(err, inspect.ErrDeaf) {
		err = &failure{code: exit.Unavailable, err: &worded{strings.ReplaceAll(plain(err), "\n", "; "), err}, hint: "see that the members can be reached, and break it again; the holder may have been told already"}
	}
	return b, err
}
