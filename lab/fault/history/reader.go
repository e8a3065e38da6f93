package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Load reads the files of all processes in a directory.
func Load(dir string) (*History, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil {
		return nil, err
	}
	h := new(History)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := h.parse(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	h.Sort()
	return h, nil
}

// Sort puts events and faults in order.
func (h *History) Sort() {
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.Call, b.Call) })
	slices.SortStableFunc(h.Faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
}

// parse adds what one process wrote.
func (h *History) parse(text []byte) error {
	events := make(map[int64]int) // by ID: where it is in h.Events
	faults := make(map[Fault]int)
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil // it was killed while it wrote
		}
		text = rest
		if err := h.line(line, events, faults); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

func (h *History) line(line []byte, events map[int64]int, faults map[Fault]int) error {
	if bytes.HasPrefix(line, []byte(`{"fault":`)) {
		var f Fault
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		put(&h.Faults, faults, Fault{Kind: f.Kind, Target: f.Target, From: f.From}, f)
		return nil
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	put(&h.Events, events, e.ID, e)
	return nil
}

// put has what was written last under a key take the place of what was before.
func put[K comparable, V any](list *[]V, at map[K]int, key K, v V) {
	if i, ok := at[key]; ok {
		(*list)[i] = v
		return
	}
	at[key] = len(*list)
	*list = append(*list, v)
}
