package validate

import (
	"fmt"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// times looks for values of guarded registers that were written more than once: a guarded
// script of one call ran again.
func (r *Report) times(h *history.History) {
	seen := make(map[int64]bool) // values are all different
	for _, e := range h.Events {
		if e.Op == history.Read && e.Times > 1 && !seen[e.Value] {
			seen[e.Value] = true
			r.violated(Guarded, e.Name, fmt.Sprintf("%d was written %d times by one call", e.Value, e.Times), e)
		}
	}
}
