package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/internal/keys"
)

// node reads what is said of the server for a quarantine: RUN_ID UNTIL_MS MAXTTL_MS
// MEMBERS.
func (e *exam) node(ctx context.Context) error {
	reply, refused, err := e.ask(ctx, "GET", keys.Node(e.conf.Prefix))
	if err != nil || refused != "" {
		return err
	}
	value, _ := reply.(string)
	e.facts.node = strings.SplitN(value, " ", 4)
	return nil
}

// longest is the quarantine of the deployment, 0: none.
func (f facts) longest() time.Duration {
	if len(f.node) != 4 {
		return 0
	}
	ms, _ := strconv.ParseInt(f.node[2], 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// quarantine: whether somebody may be granted anything now.
func quarantine(f facts) []Finding {
	all := f.longest()
	if all == 0 {
		return nil
	}
	out := Finding{Check: "quarantine", Severity: OK, Found: fmt.Sprintf("%v, after a restart, a failover or a wipe", all)}
	left, moved := f.closed()
	switch {
	case moved:
		out.Severity, out.Found = Warning, fmt.Sprintf("the server was restarted or failed over: for %v from its next use on, nobody is granted anything", all)
	case left > 0:
		out.Severity, out.Found = Warning, fmt.Sprintf("for %v more nobody is granted anything", short(left))
	default:
		return []Finding{out}
	}
	out.Reason = "Data that the server lost may have said that somebody holds a lock, who has stopped by then."
	out.Remedy = "Wait. Persistence that keeps all writes does not spare it: the server cannot tell what it lost."
	return []Finding{out}
}

// closed is what is left of the quarantine, or that it has not begun, since the server
// was restarted or failed over.
func (f facts) closed() (left time.Duration, moved bool) {
	until, _ := strconv.ParseInt(f.node[1], 10, 64)
	left = min(f.longest(), time.Duration(until-f.num("server_time_usec")/1000)*time.Millisecond)
	if f.num("server_time_usec") == 0 {
		left = 0
	}
	return max(left, 0), f.info["run_id"] != f.node[0]
}

// withQuarantine says what a quarantine makes of a lack of persistence: what is lost
// is granted to nobody while its holder believes in it.
func withQuarantine(f facts, findings []Finding) []Finding {
	for i := range findings {
		if all := f.longest(); all > 0 && findings[i].Severity == Warning {
			findings[i].Severity = Note
			findings[i].Reason = fmt.Sprintf("%s With the quarantine of %v that other gets it when the holder's lease is over.", findings[i].Reason, all)
		}
	}
	return findings
}
