package validate

import (
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// leases are the beginnings of keys that no lease may leave behind, and endless those
// of keys that stay for ever: docs/protocol.md.
var (
	leases  = []string{"lock:", "semaphore:", "zamok:readers:"}
	endless = []string{"zamok:fence:", "zamok:limit:", "zamok:node"}
)

// residue looks at what was found on the server when all leases were over. Keys that are
// not zamok's are the test's own.
func (r *Report) residue(h *history.History) {
	for _, e := range h.Events {
		if e.Op != history.Key {
			continue
		}
		switch ours := strings.HasPrefix(e.Name, "zamok:"); {
		case begins(e.Name, leases):
			r.violated(Residue, e.Name, fmt.Sprintf("is still there, for %v", time.Duration(e.TTL)), e)
		case ours && e.TTL < 0 && !begins(e.Name, endless):
			r.violated(Residue, e.Name, "does not end", e)
		}
	}
}

func begins(name string, with []string) bool {
	for _, prefix := range with {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
