package zamok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// member is one server of a quorum.
type member struct {
	q    *quorum
	name string
	d    driver.Driver

	mu         sync.Mutex
	fit        bool          // it was found to be a server of its own once
	mistake    error         // why it is none, and never was
	run        string        // the run_id that it had when it was last looked at; empty: look
	hears      int           // subscriptions of the client that are up there
	took       time.Duration // its last answer
	ahead      int64         // µs by which its clock was ahead of ours at least, when it last told; 0: it has not
	unanswered int           // requests since it last answered
	asked      instant       // when the first of these was sent
	wake       chan struct{}
	probed     instant // when it was asked all the same
	debts      []debt
	paying     bool

	queue   []request // what waits to be sent
	sending int       // pipelines of such under way
	gathers bool      // a timer will send the queue
}

const (
	silentAfter = 64                     // requests without an answer…
	silentFor   = 500 * time.Millisecond // …and so long, and a member is asked for votes…
	probeEvery  = 100 * time.Millisecond // …only as seldom as this
)

var errNotAsked = errors.New("it has not answered for a while, and was not asked")

// eval runs one script at the member.
func (m *member) eval(ctx context.Context, call driver.Call) (answer, error) {
	return answerOf(m.evalAll(ctx, []driver.Call{call})[0])
}

// evalAll runs several, and notes whether the member answers.
func (m *member) evalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	began := m.q.c.clock.now()
	m.mu.Lock()
	if m.unanswered == 0 {
		m.asked = began
	}
	m.unanswered += len(calls)
	m.mu.Unlock()
	var results []driver.Result
	if len(calls) == 1 {
		reply, err := m.d.Eval(ctx, calls[0])
		results = []driver.Result{{Reply: reply, Err: err}}
	} else {
		results = m.d.EvalAll(ctx, calls)
	}
	var refused *driver.ServerError
	for _, r := range results {
		if r.Err == nil || errors.As(r.Err, &refused) {
			m.mu.Lock()
			m.unanswered, m.took = 0, m.q.c.clock.now().sub(began)
			m.mu.Unlock()
			return results
		}
	}
	if ctx.Err() == nil {
		m.mu.Lock()
		m.run = "" // it may be another server when it comes back
		m.mu.Unlock()
	}
	return results
}

// tells notes what the member's clock shows, in µs.
func (m *member) tells(us int64) {
	if us <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead = us - time.Duration(m.q.c.clock.now()).Microseconds()
}

// usual is how long the member needs for an answer, as far as is known.
func (m *member) usual() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.took
}

// open is how many requests were sent since its last answer.
func (m *member) open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unanswered
}

// hungAfter is when Close waits no longer for a member that has said nothing.
const hungAfter = 250 * time.Millisecond

// answers says whether something is under way at a member from which an answer can be
// expected.
func (m *member) answers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unanswered == 0 {
		return m.paying
	}
	return m.q.c.clock.now().sub(m.asked) < hungAfter
}

// silent says whether the member is not to be asked for a vote: it does not answer, and
// requests would only heap up.
func (m *member) silent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.q.c.clock.now()
	if m.unanswered < silentAfter || now.sub(m.asked) < silentFor {
		return false
	}
	if now.sub(m.probed) < probeEvery {
		return true
	}
	m.probed = now
	return false
}

// look sees to it that the member is a server of its own, once and whenever it comes
// back: a server that is given twice, or a replica, is no second vote.
func (m *member) look(ctx context.Context, limit time.Duration) error {
	if m.known() {
		return nil
	}
	reply, err := m.d.Do(ctx, limit, "INFO")
	if err != nil {
		return err
	}
	text, _ := reply.(string)
	run := infoField(text, "run_id")
	if infoField(text, "role") == "slave" {
		return m.unfit("%s is a replica, of %s:%s", m.name, infoField(text, "master_host"), infoField(text, "master_port"))
	}
	m.q.looks.Lock()
	defer m.q.looks.Unlock()
	for _, other := range m.q.members {
		other.mu.Lock()
		same := other != m && run != "" && other.run == run
		other.mu.Unlock()
		if same {
			return m.unfit("%s and %s are one server", other.name, m.name)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run = run; run == "" {
		m.run = "unknown"
	}
	m.fit, m.mistake = true, nil
	return nil
}

// known says whether the member was looked at since it last came back.
func (m *member) known() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run != ""
}

// unfitError is that of a server which is no member of its own. From the start that is
// a mistake of whoever named the members, and nothing is granted; later it is a server
// that is out of order, and does not count.
type unfitError struct {
	error
	mistake bool
}

func (e *unfitError) Unwrap() error { return e.error }

func (m *member) unfit(format string, args ...any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := &unfitError{&driver.ServerError{Text: fmt.Sprintf("ERR zamok: members of a quorum: "+format, args...)}, !m.fit}
	if err.mistake {
		m.mistake = err
	}
	return err
}

// mistake is what keeps the members from being a quorum, as far as is known.
func (q *quorum) mistake() error {
	for _, m := range q.members {
		m.mu.Lock()
		err := m.mistake
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// infoField returns a field of a reply of INFO.
func infoField(text, field string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// debt is a call that gives up what the member may have of a token.
type debt struct {
	call  driver.Call
	again int     // how often it has been found to have nothing, while something may yet come
	due   instant // when to send it
	until instant // when to forget it
}

const (
	mostDebts = 4096
	owedFor   = 10 * time.Minute
)

// owe has the member told of a leave until it has answered; unsure: also after it has
// answered that it has nothing, for a vote may come behind that.
func (m *member) owe(call driver.Call, unsure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.q.c.clock.now()
	d := debt{call: call, due: now, until: now.add(owedFor), again: len(abandonPauses)}
	if unsure {
		d.again = 0
	}
	d.call.Limit = callLimit
	if len(m.debts) == mostDebts { // it does not answer, and gives no votes: what is older matters more
		return
	}
	m.debts = append(m.debts, d)
	if !m.paying {
		m.paying = true
		m.q.goes(m.pay)
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// pay sends what is owed until nothing is.
func (m *member) pay() {
	ctx := m.q.c.backgroundCtx
	for failures := 0; ; {
		batch, wait := m.due()
		if batch == nil && wait < 0 {
			return
		}
		if batch == nil {
			sleepOr(ctx, m.wake, wait)
			if ctx.Err() != nil {
				m.mu.Lock()
				m.debts, m.paying = nil, false
				m.mu.Unlock()
				return
			}
			continue
		}
		calls := make([]driver.Call, len(batch))
		for i, d := range batch {
			calls[i] = d.call
		}
		failed := false
		for i, r := range m.evalAll(ctx, calls) {
			ans, err := answerOf(r)
			failed = failed || err != nil
			m.paid(batch[i], ans, err, 50*time.Millisecond<<min(failures, 5))
		}
		if failures++; !failed {
			failures = 0
		}
	}
}

// due takes out what is to be sent now; without any, how long until there is, negative
// when nothing is owed.
func (m *member) due() (batch []debt, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, next := m.q.c.clock.now(), never
	m.debts = slices.DeleteFunc(m.debts, func(d debt) bool {
		if d.due <= now && len(batch) < batchSize {
			batch = append(batch, d)
			return true
		}
		next = min(next, d.due)
		return false
	})
	switch {
	case batch != nil:
		return batch, 0
	case next == never:
		m.paying = false
		return nil, -1
	}
	return nil, max(next.sub(now), time.Millisecond)
}

// paid puts a debt back unless that was all.
func (m *member) paid(d debt, ans answer, err error, pause time.Duration) {
	switch {
	case err != nil && refusal("", err) != nil, ans.status == "released":
		return
	case err != nil:
	case d.again == len(abandonPauses):
		return
	default:
		pause = abandonPauses[d.again]
		d.again++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.due = m.q.c.clock.now().add(pause); d.due < d.until {
		m.debts = append(m.debts, d)
	}
}
