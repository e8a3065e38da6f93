package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
)

// limit bounds each call to the server, beside ctx.
const limit = 5 * time.Second

// Severity says how bad a finding is.
type Severity string

// The severities, from good to bad.
const (
	OK       Severity = "ok"       // looked at, and in order
	Note     Severity = "note"     // worth knowing; nothing needs to be done
	Warning  Severity = "warning"  // locks are slow, or unsafe after a fault that happens
	Critical Severity = "critical" // locks do not work, or are unsafe without any fault
)

// rank orders severities: the worse, the higher. What is none of them is worst,
// so that no mistake passes as good.
func (s Severity) rank() int {
	if i := slices.Index([]Severity{OK, Note, Warning, Critical}, s); i >= 0 {
		return i
	}
	return len("none of them")
}

// Finding is what one look at one thing found.
type Finding struct {
	// Check is what was looked at, a name that never changes, such as
	// "eviction". Several findings may have the same.
	Check    string
	Member   string // of a quorum, or primary of a cluster, that it is about; empty of one server, and of all together
	Severity Severity
	Found    string // what is there, in one line
	Reason   string // why it matters to locks; empty when it does not
	Remedy   string // what to do; empty when there is nothing to do
}

// Worst returns the worst severity of all, OK of none.
func Worst(findings []Finding) Severity {
	worst := OK
	for _, f := range findings {
		if f.Severity.rank() > worst.rank() {
			worst = f.Severity
		}
	}
	return worst
}

// Config says what to look for. The zero value of every field is its default.
type Config struct {
	// Prefix of the clients whose locks are meant: zamok.Config.Prefix.
	// Default: none.
	Prefix string

	// TTL is the shortest of the locks that are used, against which pauses of the
	// server are measured. 100 ms to 24 h. Default: 15 s.
	TTL time.Duration

	// Measure is how long the server's answers and its clock are watched, at most
	// 1 h. Default: 1 s.
	Measure time.Duration

	// Keys is about how many keys of the database are looked at for those that
	// have no TTL and should; a negative number looks at all, which costs the
	// server as much as it has keys, in steps of about a millisecond. Unless it is
	// negative, the walk also ends after 2 s.
	// Default: 100,000.
	Keys int
}

func (c *Config) withDefaults() (Config, error) {
	var out Config
	if c != nil {
		out = *c
	}
	out.TTL = cmp.Or(out.TTL, 15*time.Second)
	out.Measure = cmp.Or(out.Measure, time.Second)
	out.Keys = cmp.Or(out.Keys, 100_000)
	switch err := keys.CheckPrefix(out.Prefix); {
	case err != nil:
		return out, &zamok.ConfigError{Field: "Config.Prefix", Err: err}
	case out.TTL < 100*time.Millisecond || out.TTL > 24*time.Hour:
		return out, &zamok.ConfigError{Field: "Config.TTL", Err: fmt.Errorf("%v; it must be 100ms to 24h", out.TTL)}
	case out.Measure < 0 || out.Measure > time.Hour:
		return out, &zamok.ConfigError{Field: "Config.Measure", Err: fmt.Errorf("%v; it must be at most 1h", out.Measure)}
	}
	return out, nil
}

// Examine looks at the server and returns what it found, the worst first, and
// also what is in order. A check that the server does not allow is a finding
// that says so.
//
// The error is a *zamok.ConfigError, or says that the server could not be asked,
// or not any more; what was found until then is returned beside it.
func Examine(ctx context.Context, d driver.Driver, c *Config) ([]Finding, error) {
	if d == nil {
		return nil, &zamok.ConfigError{Field: "driver", Err: errors.New("it is nil")}
	}
	conf, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &exam{d: d, conf: conf}
	err = e.run(ctx)
	worstFirst(e.findings)
	return e.findings, err
}

func worstFirst(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
}

// exam is one run of Examine.
type exam struct {
	d        driver.Driver
	conf     Config
	facts    facts
	trial    trial
	findings []Finding

	members []string // of a quorum, sorted; nil: it is one server
	serves  bool     // as a member: it grants locks now
	shard   bool     // it is one of several primaries, which are all looked at
}

func (e *exam) run(ctx context.Context) error {
	if err := e.gather(ctx); err != nil {
		return err
	}
	if e.facts.sentinel() {
		e.add(role(e.facts)...)
		return nil // it has nothing of what would be looked at below
	}
	if err := e.node(ctx); err != nil {
		return err
	}
	e.add(blind(e.facts)...)
	judges := []func(facts) []Finding{role, version, cluster, eviction, memory, persistence, quarantine, disk, replicas, pauses, buffers, connections}
	switch {
	case e.shard:
		judges = slices.Concat(judges[:2], judges[3:]) // each is told of
	case e.members != nil:
		judges = []func(facts) []Finding{role, e.member, version, eviction, memory, lossOfMember, disk, replicasOfMember, pauses, buffers, connections}
	}
	for _, judge := range judges {
		if e.facts.info != nil {
			e.add(judge(e.facts)...)
		}
	}
	for _, look := range []func(context.Context) error{e.measure, e.tryScripts, e.tryPubSub, e.tryKeys} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	e.add(e.trial.findings()...)
	return nil
}

func (e *exam) add(f ...Finding) { e.findings = append(e.findings, f...) }

// ask sends a plain command. What the server itself refuses is no error, but
// its words: most checks have something to say about them.
func (e *exam) ask(ctx context.Context, args ...string) (reply any, refused string, err error) {
	reply, err = e.d.Do(ctx, limit, args...)
	refused, err = words(err)
	return reply, refused, err
}

// eval runs a script, as ask.
func (e *exam) eval(ctx context.Context, script *driver.Script, keys, args []string) (reply any, refused string, err error) {
	reply, err = e.d.Eval(ctx, driver.Call{Script: script, Keys: keys, Args: args, Limit: limit})
	refused, err = words(err)
	return reply, refused, err
}

// words parts what the server said from what kept it from saying anything.
// Without a password nothing can be asked at all.
func words(err error) (refused string, left error) {
	var said *driver.ServerError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &said) && said.Code() != "NOAUTH" && said.Code() != "WRONGPASS":
		return said.Text, nil
	}
	return "", fmt.Errorf("doctor: the server cannot be asked: %w", err)
}
