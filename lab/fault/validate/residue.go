package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// keep is a line of the protocol's table of keys.
type keep struct {
	name string
	most time.Duration
}

// keeps says for how long keys of that name, or that begin so if it ends in a colon, may
// stay when all leases are over, as docs/protocol.md does; no time: not at all.
var keeps = []keep{
	{"lock:", 0},
	{"semaphore:", 0},
	{"zamok:readers:", 0},
	{"zamok:marks:", 24*time.Hour + time.Minute},
	{"zamok:queue:", 15 * time.Minute},
	{"zamok:fence:", forever},
	{"zamok:call:", time.Minute},
	{"zamok:limit:", forever},
	{"zamok:broken:", 24 * time.Hour},
	{"zamok:proc:", 2 * time.Minute},
	{"zamok:once:", 4 * time.Minute}, // twice the traffic's retention
	{"zamok:events", 30 * 24 * time.Hour},
	{"zamok:node", forever},
}

const (
	forever = time.Duration(never)
	// steps are as much more as the clock of a server may have been set back.
	steps = time.Minute
)

// residue looks at what was found on the server when all leases were over. Keys that are
// not zamok's are the test's own.
func (r *Report) residue(h *history.History) {
	for _, e := range h.Events {
		if e.Op != history.Key {
			continue
		}
		ours := strings.HasPrefix(e.Name, "zamok:")
		i := slices.IndexFunc(keeps, func(k keep) bool {
			return e.Name == k.name || strings.HasSuffix(k.name, ":") && strings.HasPrefix(e.Name, k.name)
		})
		switch left := time.Duration(e.TTL); {
		case i < 0 && ours:
			r.violated(Residue, e.Name, "is no key of the protocol", e)
		case i < 0:
		case keeps[i].most == 0:
			r.violated(Residue, e.Name, fmt.Sprintf("is still there, for %v", left), e)
		case keeps[i].most == forever:
		case left < 0:
			r.violated(Residue, e.Name, "does not end", e)
		case left > keeps[i].most+steps:
			r.violated(Residue, e.Name, fmt.Sprintf("is there for %v", left), e)
		}
	}
}
