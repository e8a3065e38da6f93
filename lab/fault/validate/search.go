package validate

import (
	"fmt"
	"hash/fnv"
	"path/filepath"

	"github.com/anishathalye/porcupine"
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
		r.violated(p, name, text)
	case porcupine.Ok:
	}
}
