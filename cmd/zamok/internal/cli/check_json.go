package cli

import (
	"strings"

	"github.com/zamok-go/zamok/inspect"
)

// jsonReport is what check --json prints.
type jsonReport struct {
	Status        string        `json:"status"` // ok, warning, critical; unknown has jsonUnknown
	TimeMS        int64         `json:"time_ms"`
	Held          int           `json:"held"`
	Holders       int           `json:"holders"`
	Waiting       int           `json:"waiting"`
	Processes     int           `json:"processes"`
	Silent        int           `json:"processes_silent"`
	Unnamed       int           `json:"unnamed"`
	LongestHoldMS int64         `json:"longest_hold_ms"`
	LongestWaitMS int64         `json:"longest_wait_ms"`
	Problems      []jsonProblem `json:"problems"`
}

type jsonProblem struct {
	Kind     string        `json:"kind"`
	Critical bool          `json:"critical"`
	Text     string        `json:"text"`
	Token    string        `json:"token"` // of the holder that it is about; empty when it is about none
	Lock     jsonLock      `json:"lock"`
	Deadlock *jsonDeadlock `json:"deadlock"` // null when it is none
}

// jsonUnknown is printed when nobody could look.
type jsonUnknown struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

func jsonReportOf(r *inspect.Report) jsonReport {
	j := jsonReport{
		Status: strings.ToLower(checkNames[verdict(r)]), TimeMS: r.Time.UnixMilli(), Held: r.Held, Holders: r.Holders, Waiting: r.Waiting, Processes: r.Processes,
		Silent: r.Silent, Unnamed: r.Unnamed, LongestHoldMS: ms(r.LongestHold), LongestWaitMS: ms(r.LongestWait), Problems: []jsonProblem{},
	}
	for _, p := range r.Problems {
		problem := jsonProblem{Kind: p.Kind, Critical: p.Critical, Text: problemText(p), Token: p.Token, Lock: jsonOf(p.Lock)}
		if p.Deadlock != nil {
			d := jsonDeadlockOf(*p.Deadlock)
			problem.Deadlock = &d
		}
		j.Problems = append(j.Problems, problem)
	}
	return j
}
