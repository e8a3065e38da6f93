package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// claim is what run, lock and wait have in common: one wait for one lock, for a
// reader's share of it, or for a permit.
type claim struct {
	server   serverFlags
	name     string
	with     []string // others that are taken together with it
	shared   bool     // as a reader
	slots    int      // a permit of so many; 0: it is a lock
	try      bool     // do not wait
	wait     duration
	limited  bool     // -w was given
	ttl      duration // that must be left at the beginning; 0: whatever is
	conflict int      // exit code when the lock was not obtained
	replicas int      // that must have the lock
	reason   string
	quiet    bool

	service string // what others are told that holds the lock
	command string // what they are told that runs: no arguments, which may be secrets
	missed  string // what is said when -w is over
}

func (c *claim) addLimits(flags *pflag.FlagSet, conflict string) {
	flags.BoolVarP(&c.try, "try", "n", false, "do not wait: exit with 75 when another holds the lock")
	flags.VarP(&c.wait, "wait", "w", "wait at most this `TIME`, then exit with 75; 0 is -n\n(default: as long as it takes)")
	flags.IntVarP(&c.conflict, "conflict-exit-code", "E", exit.NotObtained, conflict)
	flags.Lookup("wait").DefValue = "" // said in the text
	flags.IntVar(&c.replicas, "wait-replicas", 0, "take the lock only if `N` replicas have it within a second, so that a\nfailover to one of them keeps it; as many as can be promoted")
	c.missed = "not obtained"
}

func (c *claim) addTalk(flags *pflag.FlagSet) {
	flags.StringVar(&c.reason, "reason", "", "`TEXT` for those who wait")
	c.addQuiet(flags)
}

func (c *claim) addQuiet(flags *pflag.FlagSet) {
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "say nothing but errors")
}

// checkLimits is for what addLimits and addTalk have added.
func (c *claim) checkLimits(lowest int) error {
	switch {
	case c.try && c.limited:
		return usage("-n does not wait, -w says how long to wait: leave out one", "--try and --wait were both given")
	case c.conflict < lowest || c.conflict > 255:
		return usage(fmt.Sprintf("write %d to 255", lowest), "--conflict-exit-code is %d", c.conflict)
	case c.replicas < 0:
		return usage("it is how many must have the lock; 0 is none", "--wait-replicas is %d", c.replicas)
	case len(c.reason) > 256:
		return usage("shorten it", "--reason has %d bytes; at most 256 are allowed", len(c.reason))
	}
	if c.limited && c.wait == 0 {
		c.try = true
	}
	return nil
}

func checkTTL(ttl duration, hint string) error {
	if d := time.Duration(ttl); d < 100*time.Millisecond || d > 24*time.Hour {
		return usage(hint, "--ttl is %v; it must be 100ms to 24h", d)
	}
	return nil
}

// checkName has the library look at name and prefix, on a server in memory.
func checkName(prefix, name string) error {
	if strings.HasPrefix(name, semaphoreMark) {
		return usage("a permit is taken by -N: zamok run -N 3 NAME -- COMMAND", "%q is how a semaphore is called in lists: it is no name of a lock", name)
	}
	client, err := zamok.New(memory.New(), &zamok.Config{Prefix: prefix})
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Mutex(name, nil).TryDo(context.Background(), func(context.Context) error { return nil })
}

// session is a connection, and what is around a lock that is taken over it.
type session struct {
	client   *zamok.Client
	told     *progress
	signals  *signalWatch
	ttl      time.Duration // after which the lock ends when it was not released
	detached bool          // set by who detached it
}

// connected connects and calls use. What use neither releases nor detaches is
// released then.
func (a *app) connected(ctx context.Context, c *claim, use func(*session) error) error {
	surviveClosedPipe()
	if c.quiet {
		a.talk.hush()
	}
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, &c.server)
	if err != nil {
		return err
	}
	defer srv.close()
	told := newProgress(a.talk, c.name)
	told.several = len(c.with) > 0
	told.who = func(name, token string) (service, reason string) {
		return holderOf(signals.waiting, srv, c, name, token)
	}
	defer told.stop()
	client, err := c.client(signals.waiting, srv, told.trace())
	if err != nil {
		return err
	}
	s := &session{client: client, told: told, signals: signals, ttl: time.Duration(c.ttl)}
	err = use(s)
	// Close waits until the lock or the place in the queue is given up. What a member of
	// a quorum still has that does not answer stops nobody, once a majority has answered.
	if closeErr := client.Close(); closeErr != nil && err == nil && !s.detached && srv.quorum == nil {
		a.notReleased(c, closeErr, s.ttl)
	}
	return err
}

// hold is a lock that was obtained.
type hold struct {
	*session
	all   held
	lease *zamok.Lease // of the name
}

// take connects, waits for the lock and gives it to use.
func (a *app) take(ctx context.Context, c *claim, m *zamok.MutexConfig, use func(*hold) error) error {
	return a.connected(ctx, c, func(s *session) error {
		s.ttl = m.TTL
		all, err := c.obtain(s.signals.waiting, s.client, m, s.told)
		if err != nil {
			return c.notObtained(err)
		}
		return use(&hold{session: s, all: all, lease: c.leaseOf(all)})
	})
}

// notReleased tells that others may have to wait for the end of the ttl.
func (a *app) notReleased(c *claim, err error, ttl time.Duration) {
	a.talk.fail("%s: not released: %v; it ends by itself within %v", strings.TrimPrefix(c.thing(err), "the "), strip(err), ttl)
}

func (c *claim) client(ctx context.Context, srv *server, trace *zamok.Trace) (*zamok.Client, error) {
	cfg, err := c.server.config(ctx, srv)
	if err != nil {
		return nil, err
	}
	cfg.Name, cfg.Version, cfg.Command, cfg.Under = cut(c.service, 64), build(), cut(c.command, 256), under()
	cfg.Trace, cfg.WaitReplicas = trace, c.replicas
	return srv.newClient(cfg)
}

// cut keeps a text within n bytes, and its last character whole.
func cut(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}

// under is the token of the lease under which this process runs: of an outer
// zamok run, or of a script that took it with zamok lock. It is to find those who
// wait for each other, so one that is none is no error here.
func under() string {
	if t := os.Getenv("ZAMOK_TOKEN"); strings.HasPrefix(t, "z1/") && len(t) <= 256 {
		return t
	}
	return ""
}

// holderOf asks for what the holder with that token says of itself, but not for long.
func holderOf(ctx context.Context, srv *server, c *claim, name, token string) (service, reason string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if srv.quorum != nil {
		if l, _ := srv.quorum.Show(ctx, name); l.Holder.Token == token {
			return l.Holder.Service, l.Holder.Reason
		}
		return "", ""
	}
	in, err := inspect.New(srv.driver, c.server.prefix)
	if err != nil {
		return "", ""
	}
	l, _ := (&oneLock{name: c.title(name)}).read(ctx, in) // has no holders when it failed
	for _, h := range l.Holders {
		if h.Token == token {
			return h.Service, h.Reason
		}
	}
	return "", ""
}

// obtain takes the lock and sees to it that the whole ttl is granted, if there is
// one. A lease that was handed over has 2 s at first; one that is lost before it
// was of use did no harm, so the wait begins again.
func (c *claim) obtain(ctx context.Context, client *zamok.Client, m *zamok.MutexConfig, told *progress) (held, error) {
	began := time.Now()
	for {
		config := *m
		if c.limited && !c.try {
			config.Wait = max(time.Duration(c.wait)-time.Since(began), time.Millisecond)
		}
		told.begin()
		lease, err := c.acquire(ctx, client, &config)
		told.end(err)
		if err != nil {
			return nil, err
		}
		if err = whole(ctx, lease, time.Duration(c.ttl)); err == nil {
			return lease, nil
		}
		_ = lease.Release(ctx)
		if !errors.Is(err, zamok.ErrLost) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// whole raises what is left of a lease to the ttl, unless nearly all of it is.
func whole(ctx context.Context, lease held, ttl time.Duration) error {
	if time.Until(lease.Deadline()) >= ttl-ttl/10 {
		return nil
	}
	return extend(ctx, lease, ttl)
}

// extend tries until the lease that was passed on is over: a connection that
// breaks now must not cost the place in line.
func extend(ctx context.Context, lease held, ttl time.Duration) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := lease.Extend(ctx, ttl)
		if !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrLost) || ctx.Err() != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-lease.Context().Done():
		}
	}
}

// notObtained explains why there is no lock.
func (c *claim) notObtained(err error) error {
	var other *zamok.HeldError
	var stopped *interrupted
	name := c.which(err)
	switch {
	case errors.As(err, &stopped):
		return &failure{code: stopped.code(), err: fmt.Errorf("%q: stopped waiting: %w", c.name, stopped)}
	case errors.As(err, &other):
		what := fmt.Sprintf("%q: %s", name, other.Describe())
		switch {
		case other.Permits == 0 && other.Readers == 0:
			what = fmt.Sprintf("%q is %s", name, other.Describe())
		case c.shared && other.Readers > 0:
			what += "; somebody who is to have it alone waits, and comes first"
		}
		hint := "without -n it waits its turn"
		switch {
		case c.try && c.limited:
			hint = "without -w 0 it waits its turn"
		case !c.try:
			what = fmt.Sprintf("%q: %s within %v: %s", name, c.missed, &c.wait, other.Describe())
			hint = "`zamok show` tells who is in line"
		}
		return &failure{code: c.conflict, err: &worded{what, err}, hint: hint, silent: c.conflict == 0}
	}
	return err
}
