package validate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// search asks Porcupine for an order, and draws what has none.
func (r *Report) search(p Property, name string, model porcupine.Model, operations []porcupine.Operation, limits Limits) {
	result, info := porcupine.CheckOperationsVerbose(model, operations, limits.Search)
	switch result {
	case porcupine.Unknown:
		r.Undecided++
	case porcupine.Illegal:
		text := fmt.Sprintf("no order of its %d operations explains them", len(operations))
		if limits.Pictures != "" {
			h := fnv.New32a()
			_, _ = h.Write([]byte(string(p) + name))
			file := filepath.Join(limits.Pictures, fmt.Sprintf("%08x.html", h.Sum32()))
			if err := porcupine.VisualizePath(model, info, file); err != nil {
				file = err.Error()
			}
			text += ": " + file
		}
		r.violated(p, name, text, stuck(operations, info)...)
	case porcupine.Ok:
	}
}

// stuck shows where the search came furthest: the last that it put in an order, and those
// that had to come next and could not.
func stuck(operations []porcupine.Operation, info porcupine.LinearizationInfo) []history.Event {
	const most = 4 // of each
	var longest []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, order := range part {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := make(map[history.Event]bool, len(longest))
	for _, o := range longest {
		placed[eventOf(o)] = true
	}
	left := slices.DeleteFunc(slices.Clone(operations), func(o porcupine.Operation) bool { return placed[eventOf(o)] })
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	var events []history.Event
	for _, o := range append(longest[max(0, len(longest)-most):], left[:min(len(left), most)]...) {
		events = append(events, eventOf(o))
	}
	return events
}

func eventOf(o porcupine.Operation) history.Event {
	if step, ok := o.Input.(lockStep); ok {
		return step.Event
	}
	e, _ := o.Input.(history.Event)
	return e
}
