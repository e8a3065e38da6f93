package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zamok-go/zamok"
)

// ExamineQuorum looks at all members of a quorum (zamok.NewQuorum) at the same time,
// and returns what it found: of each what Examine finds, in so far as it matters to a
// member, and whether they are a quorum together. A member that cannot be asked is a
// finding, since the others go on without it.
//
// The error is a *zamok.ConfigError, or why ctx ended.
func ExamineQuorum(ctx context.Context, nodes []zamok.Node, c *Config) ([]Finding, error) {
	conf, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	client, err := zamok.NewQuorum(nodes, &zamok.Config{Prefix: conf.Prefix})
	if err != nil {
		return nil, err
	}
	if err := client.Close(); err != nil {
		return nil, err
	}
	exams := make([]*exam, len(nodes))
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	for i, n := range nodes {
		exams[i] = &exam{d: n.Driver, conf: conf, members: names}
	}
	errs := runAll(ctx, exams)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var findings []Finding
	for i, e := range exams {
		if errs[i] != nil {
			e.add(Finding{
				Check: "answers", Severity: Warning, Found: "it cannot be asked: " + unwrapped(errs[i]),
				Reason: "It votes for nobody. Locks go on while a majority of others is there.", Remedy: "See whether it runs, and can be reached from here.",
			})
		}
		if twin := e.twin(exams[:i]); twin >= 0 {
			e.serves = false
			e.add(Finding{
				Check: "member", Severity: Critical, Found: "it is the same server as " + nodes[twin].Name,
				Reason: "It has one vote, and the quorum one member less than it seems.", Remedy: "Each member must be a server that shares nothing with the others.",
			})
		}
		findings = append(findings, e.of(nodes[i].Name)...)
	}
	findings = append(append(findings, apart(exams)...), majority(exams))
	worstFirst(findings)
	return findings, nil
}

func unwrapped(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

// twin is which of those that were looked at before is the same server; -1: none.
func (e *exam) twin(before []*exam) int {
	return slices.IndexFunc(before, func(b *exam) bool {
		return e.facts.info["run_id"] != "" && e.facts.info["run_id"] == b.facts.info["run_id"]
	})
}

// majority says whether enough members serve for locks to be granted.
func majority(exams []*exam) Finding {
	serving := 0
	for _, e := range exams {
		if e.serves {
			serving++
		}
	}
	need := len(exams)/2 + 1
	out := Finding{Check: "majority", Severity: OK, Found: fmt.Sprintf("%d of %d members serve, and %d must", serving, len(exams), need)}
	switch {
	case serving < need:
		out.Severity = Critical
		out.Reason = "No lock can be taken. What is held is renewed while a majority can be asked that still has it."
		out.Remedy = "Bring back those that are away, or wait until their quarantine is over: see what is said of each."
	case serving == need && serving < len(exams):
		out.Severity = Warning
		out.Reason = "If one more fails, no lock can be taken or renewed."
		out.Remedy = "See what is said of those that do not serve."
	}
	return out
}

// apart finds members that were told different quarantines: a wiped one is told that of
// whoever comes first.
func apart(exams []*exam) []Finding {
	var told []string
	for _, e := range exams {
		if all := e.facts.longest(); all > 0 && !slices.Contains(told, all.String()) {
			told = append(told, all.String())
		}
	}
	if len(told) < 2 {
		return nil
	}
	return []Finding{{
		Check: "member", Severity: Critical, Found: "the members have different quarantines: " + strings.Join(told, ", "),
		Reason: "Each refuses whoever says another one, so that whatever a client says, some refuse it.",
		Remedy: "See what is said of each. Delete the node's key (zamok:node) on those that have the wrong one: each has its quarantine then, and is told the one of the next client.",
	}}
}

// member judges what is said of the server as a member of a quorum, and notes whether
// it grants locks now.
func (e *exam) member(f facts) []Finding {
	out := Finding{Check: "member", Severity: Warning}
	all := f.longest()
	const gone = "It may have lost a vote, so it gives none meanwhile. Locks go on while a majority of others is there."
	switch {
	case f.info["role"] == "slave": // role says so
		return nil
	case f.num("cluster_enabled") != 0:
		out.Severity, out.Found = Critical, "it is a node of a cluster"
		out.Reason = "A member has all keys, and a node of a cluster has those of its slots."
		out.Remedy = "Each member must be a server of its own."
	case all == 0:
		out.Severity, out.Found = Note, "it is new, or was wiped: a quarantine begins at its first use"
		out.Reason = "Until that is over it gives no vote."
		out.Remedy = "zamok quorum init, while all members are new and empty; or wait."
	case f.node[3] != strings.Join(e.members, ","):
		out.Severity, out.Found = Critical, "it was told other members: "+f.node[3]
		out.Reason = "It refuses this quorum: two lists can have two majorities, and so two holders."
		out.Remedy = "Name the members alike on all hosts. To change who they are, stop all who use the quorum, delete the node's key (zamok:node) on each member, and start again: each has its quarantine then."
	default:
		left, moved := f.closed()
		switch {
		case moved:
			out.Found, out.Reason = fmt.Sprintf("it was restarted or failed over: quarantine for %v from its next use on", all), gone
		case left > 0:
			out.Found, out.Reason = fmt.Sprintf("quarantine for %v more", short(left)), gone
		default:
			e.serves = true
			out.Severity, out.Found = OK, fmt.Sprintf("serves; after a restart or a loss of data a quarantine of %v", all)
			return []Finding{out}
		}
		out.Remedy = "Wait."
	}
	return []Finding{out}
}

// lossOfMember: what a member loses costs its vote for a while, and no lock, unless a
// majority loses it together.
func lossOfMember(f facts) []Finding {
	out := kept(f)
	for i := range out {
		if out[i].Severity == Warning {
			out[i].Severity = Note
			out[i].Reason = "After a restart this member has lost its votes, and gives none until its quarantine is over. Locks go on with a majority of others; if a majority restarts at a time, what was held is lost, and granted to nobody meanwhile."
			out[i].Remedy = "appendonly yes, where one power failure can reach a majority."
		}
	}
	return out
}

// replicasOfMember: a member needs none, and one that is promoted in its place may lack
// a vote, for which its quarantine is.
func replicasOfMember(f facts) []Finding {
	n := f.num("connected_slaves")
	out := Finding{Check: "replicas", Severity: OK, Found: "none"}
	if n > 0 {
		out.Severity, out.Found = Note, fmt.Sprintf("%d connected", n)
		out.Reason = "A replica is no member, and has no vote. One that is promoted in this member's place has the quarantine first."
	}
	if q := quorumOf(f); q.need > 0 || q.guessed {
		return append([]Finding{out}, judgeQuorum(f, n, q))
	}
	return []Finding{out}
}
