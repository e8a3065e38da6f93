package zamok

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// Node is one member of a quorum: a server that shares nothing with the others.
type Node struct {
	// Name of the member in the deployment's list, its address say: 1 to 128 bytes,
	// without a comma or a blank. The sorted list stands on every member, and a
	// client with another list is refused.
	Name   string
	Driver driver.Driver
}

const (
	maxNodeName      = 128
	defaultQuorumMax = time.Minute // Config.Quarantine of a quorum
)

// NewQuorum makes a client whose locks are decided by the majority of 3, 5 or 7
// servers that share nothing (Redlock): they are held while fewer than half of them
// are down, hang, or have lost their data. The client libraries behind the drivers
// stay the caller's. It sends nothing; the error is a *ConfigError.
//
// A lock is held when a majority has granted it and has written back its fence, and
// until the majority-th last of their deadlines. A member that restarted or lost its
// data takes no part for Config.Quarantine, by default 1 minute, which is on always,
// is the longest TTL, and must be the same for all clients; a new one is known from
// the start when it was stamped (`zamok quorum init`). A queue on one member says
// who tries next, and promises no order.
//
// It has Mutexes. RWMutex, Semaphore and Multi, the scripts of Lease.Run,
// Lease.Detach and what is done by token, and MinHold return a *ConfigError that says
// why, of every call.
func NewQuorum(nodes []Node, cfg *Config) (*Client, error) {
	if err := checkNodes(nodes); err != nil {
		return nil, err
	}
	var own Config
	if cfg != nil {
		own = *cfg
	}
	if own.WaitReplicas != 0 {
		return nil, badField("WaitReplicas", "not on a quorum: a majority of its members has what is granted, and a replica of one of them is no member")
	}
	own.Quarantine = cmp.Or(own.Quarantine, defaultQuorumMax)
	q := &quorum{majority: len(nodes)/2 + 1, busy: make(map[string]*unsettled)}
	var names []string
	for _, n := range nodes {
		m := &member{q: q, name: n.Name, d: n.Driver, wake: make(chan struct{}, 1)}
		q.members = append(q.members, m)
		names = append(names, n.Name)
	}
	slices.Sort(names)
	q.terms = strconv.FormatInt(ceilMS(own.Quarantine), 10) + " " + strings.Join(names, ",")
	c, err := New(q, &own)
	if err != nil {
		return nil, err
	}
	q.c, c.quorum = c, q
	q.node = c.cfg.Prefix + "zamok:node"
	return c, nil
}

func checkNodes(nodes []Node) error {
	switch len(nodes) {
	case 3, 5, 7:
	case 2, 4, 6:
		return badField("nodes", "%d; an even number stands no more failures than one fewer, and two halves can stop each other: 3, 5 or 7", len(nodes))
	default:
		return badField("nodes", "%d; a quorum has 3, 5 or 7", len(nodes))
	}
	for i, n := range nodes {
		switch {
		case n.Driver == nil:
			return badField("nodes", "the driver of %.64q is nil", n.Name)
		case n.Name == "" || len(n.Name) > maxNodeName || strings.ContainsAny(n.Name, ", \t\r\n\x00"):
			return badField("nodes", "name %.64q; it must have 1 to %d bytes and no comma or blank", n.Name, maxNodeName)
		}
		for _, other := range nodes[:i] {
			if other.Name == n.Name {
				return badField("nodes", "%.64q is given twice", n.Name)
			}
			if reflect.ValueOf(n.Driver).Comparable() && n.Driver == other.Driver {
				return badField("nodes", "%.64q and %.64q have one driver", other.Name, n.Name)
			}
		}
	}
	return nil
}

// noQuorum is the mistake of whoever wants of a quorum what it cannot do; nil of
// another client.
func (c *Client) noQuorum(field, why string) error {
	if c.quorum == nil {
		return nil
	}
	return badField(field, "not on a quorum: %s", why)
}

// quorum is the driver of a client that NewQuorum made: the engine's scripts become
// requests to all members, and their replies one reply of the same form. What must
// hold:
//
//  1. A vote is for one token that was never used before, and so is all that is sent
//     to give it up: nothing that is late can end another attempt's vote.
//  2. Nobody holds before a majority has voted and has then acknowledged the fence,
//     the largest of those votes; and not for longer than all of that majority keep
//     their votes, counted from before they were asked.
//  3. What a member was asked for and did not answer is looked after (member.owe)
//     until it has answered, or some minutes have passed.
//  4. No caller waits for a member without which the outcome is known.
type quorum struct {
	c        *Client
	members  []*member
	majority int
	node     string // the key by which a quarantine is known
	terms    string

	looks sync.Mutex // two members that look at a time must see each other; before their mu

	mu   sync.Mutex            // the last to be taken
	busy map[string]*unsettled // by token
	idle int                   // how many of these have nothing under way
	work int                   // goroutines behind; Close waits for them
	rest chan struct{}         // closed when there is none, if somebody waits for that
}

// unsettled is what goes on for a token behind its holder's back: so a release must be
// told again to a member that may have voted after it.
type unsettled struct {
	asks   int              // under way
	unsure map[*member]bool // members that may have a vote, or may have one yet
	left   bool             // it was released meanwhile
}

// mostUnsettled bounds what is remembered of tokens that are never released.
const mostUnsettled = 4096

// begins notes a request for a token that may set a key, or may lead to one; true when
// the token was released meanwhile, while another was under way.
func (q *quorum) begins(token string) (left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.busy[token]
	switch {
	case u == nil:
		if q.idle > mostUnsettled {
			maps.DeleteFunc(q.busy, func(_ string, u *unsettled) bool { return u.asks == 0 })
			q.idle = 0
		}
		u = &unsettled{unsure: make(map[*member]bool)}
		q.busy[token] = u
	case u.asks == 0:
		q.idle--
	}
	u.asks++
	return u.left
}

// ends notes that it ended, and which members may have set it all the same; true when
// the token was released meanwhile.
func (q *quorum) ends(token string, unsure ...*member) (left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.busy[token]
	if u == nil {
		return false
	}
	for _, m := range unsure {
		u.unsure[m] = true
	}
	switch u.asks--; {
	case u.asks > 0:
	case u.left, len(u.unsure) == 0:
		delete(q.busy, token)
	default:
		q.idle++
	}
	return u.left
}

// wasLeft says whether a token was released while something goes on for it. Only what
// comes later than that is told again: a member that is told twice answers the release
// itself that it has nothing.
func (q *quorum) wasLeft(token string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.busy[token]
	return u != nil && u.left
}

// leaves notes the release of a token, and returns the members that may have a vote
// for it later than that.
func (q *quorum) leaves(token string) []*member {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.busy[token]
	if u == nil {
		return nil
	}
	u.left = true
	var unsure []*member
	for m := range u.unsure {
		unsure = append(unsure, m)
	}
	clear(u.unsure)
	if u.asks == 0 {
		delete(q.busy, token)
		q.idle--
	}
	return unsure
}

// Clustered implements driver.Driver: no member is a cluster.
func (q *quorum) Clustered() bool { return false }

// EvalWait implements driver.Driver. Nobody calls it: NewQuorum refuses WaitReplicas.
func (q *quorum) EvalWait(ctx context.Context, call driver.Call, _ int, _ time.Duration) (any, int64, error) {
	reply, err := q.Eval(ctx, call)
	return reply, 0, err
}

// Do sends a command to the first member that answers it.
func (q *quorum) Do(ctx context.Context, limit time.Duration, args ...string) (reply any, err error) {
	all := slices.Clone(q.members)
	slices.SortStableFunc(all, func(a, b *member) int { return cmp.Compare(a.open(), b.open()) })
	for _, m := range all {
		if reply, err = m.d.Do(ctx, limit, args...); err == nil {
			break
		}
	}
	return reply, err
}

// Eval implements driver.Driver.
func (q *quorum) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Acquire {
		return q.acquire(ctx, call)
	}
	r := q.EvalAll(ctx, []driver.Call{call})[0]
	return r.Reply, r.Err
}

// behind is a context for what goes on when its caller has gone: it has the caller's
// values.
type behind struct {
	context.Context                 //nolint:containedctx // it is a context itself
	values          context.Context //nolint:containedctx // as above
}

func (b behind) Value(key any) any { return b.values.Value(key) }

func (q *quorum) behind(ctx context.Context) context.Context {
	return behind{q.c.backgroundCtx, ctx}
}

// patience is how much longer than a majority took the others are waited for, when the
// outcome may depend on them: those that are further off have their usual time.
func (q *quorum) patience(took time.Duration) time.Duration {
	usual := took
	for _, m := range q.members {
		usual = max(usual, 2*m.usual()-took)
	}
	return usual + 20*time.Millisecond
}

// proposal is a fence that all members can give: a little ahead of all their clocks
// when the request gets there, as far as they have told them. When all of a majority
// give it, nobody has to be told another one. 0: not known.
func (q *quorum) proposal() int64 {
	var ahead int64
	var took time.Duration
	for _, m := range q.members {
		m.mu.Lock()
		ahead, took = max(ahead, m.ahead), max(took, m.took)
		m.mu.Unlock()
	}
	if ahead == 0 {
		return 0
	}
	return time.Duration(q.c.clock.now()).Microseconds() + ahead + (min(took, 100*time.Millisecond) + time.Millisecond).Microseconds()
}

// apart is by how much the members' clocks differ, as far as they have told them.
func (q *quorum) apart() time.Duration {
	if q == nil {
		return 0
	}
	var least, most int64
	for _, m := range q.members {
		m.mu.Lock()
		ahead := m.ahead
		m.mu.Unlock()
		if ahead != 0 && (least == 0 || ahead < least) {
			least = ahead
		}
		most = max(most, ahead)
	}
	return time.Duration(most-least) * time.Microsecond
}

// goes runs f behind.
func (q *quorum) goes(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work++
	go func() {
		f()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.work--; q.work == 0 && q.rest != nil {
			close(q.rest)
			q.rest = nil
		}
	}()
}

// rests is closed as soon as nothing goes on behind.
func (q *quorum) rests() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.rest
	if rest == nil {
		rest = make(chan struct{})
	}
	if q.work == 0 {
		close(rest)
	} else {
		q.rest = rest
	}
	return rest
}

// settle waits for what goes on behind. Unless all is set, not for members that do not
// answer: what they are owed ends by its TTL.
func (q *quorum) settle(all bool) {
	if q == nil {
		return
	}
	done := q.rests()
	look := time.NewTicker(hungAfter / 5)
	defer look.Stop()
	for {
		select {
		case <-done:
			return
		case <-look.C:
			if !all && !slices.ContainsFunc(q.members, (*member).answers) {
				return
			}
		}
	}
}

// failure is the error of a call that so few members answered. One is permanent, in the
// words of a server, only when so many say so that there cannot be a majority: else
// those words are told as text.
func (q *quorum) failure(errs []error) error {
	if len(errs) == 0 {
		return errNoMajority
	}
	refused := 0
	for _, err := range errs {
		if refusal("", err) != nil {
			refused++
		}
	}
	if len(q.members)-refused >= q.majority {
		errs = slices.Clone(errs)
		for i, err := range errs {
			if refusal("", err) != nil {
				errs[i] = errors.New(err.Error())
			}
		}
	}
	return errors.Join(errs...)
}
