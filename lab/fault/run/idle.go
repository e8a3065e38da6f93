package run

import (
	"fmt"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// least is how often something must have happened for a campaign to tell anything: far
// less than what a busy machine does in a calm spell.
const least = 3

// idle says what was done too seldom when no fault was near any more: a history of
// nothing but failures has no violation.
func (c *campaign) idle(h *history.History, checked *validate.Report) (list []string) {
	var calm int64 // since when
	for _, f := range h.Faults {
		if f.Harms != 0 {
			calm = max(calm, f.Till+int64(c.limits().Recovery))
		}
	}
	done := make(map[string]int)
	for i := range h.Events {
		e := &h.Events[i]
		if e.Call < calm || e.Outcome != history.OK {
			continue
		}
		switch {
		case e.Op.Takes():
			done[string(e.Kind)]++
		case e.Op == history.Run:
			done["once"]++
		}
		if e.Handed {
			done["hand-over"]++
		}
	}
	done["wait that is judged"] = checked.Waits.Judged
	wanted := []string{string(history.Mutex), "wait that is judged"}
	if c.kind.Mode != deploy.Quorum {
		wanted = append(wanted, "hand-over", string(history.Reader), string(history.Writer), string(history.Permit), "once")
	}
	need := least
	if c.kind.WaitReplicas > 0 { // they hold for seconds
		need = 1
	}
	for _, what := range wanted {
		if done[what] < need {
			list = append(list, fmt.Sprintf("%s, %d times in the calm", what, done[what]))
		}
	}
	return list
}
