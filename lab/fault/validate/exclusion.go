package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// space is what excludes each other: a semaphore and a lock of one name do not.
func space(kind history.Kind, name string) string {
	if kind == history.Permit {
		return "semaphore " + name
	}
	return name
}

// byName sorts holds by what excludes each other.
func byName(all []hold) map[string][]hold {
	names := make(map[string][]hold)
	for _, h := range all {
		s := space(h.kind, h.took.Name)
		names[s] = append(names[s], h)
	}
	return names
}

// exclusion sweeps over the holds of each name. One that ends when another begins is
// over.
func (r *Report) exclusion(h *history.History, all []hold, limits Limits) {
	for name, holds := range byName(all) {
		var now []hold
		for _, one := range holds {
			now = slices.DeleteFunc(now, func(old hold) bool { return old.end <= one.start })
			if one.end <= one.start {
				continue
			}
			now = append(now, one)
			if others := conflict(now); len(others) > 0 {
				r.violated(Exclusion, name, overlap(others), events(others)...)
				r.slow(h, name, others[0], one, limits)
			}
		}
	}
}

// conflict returns those of now that may not be held together with the last of them.
func conflict(now []hold) []hold {
	last := now[len(now)-1]
	if last.kind == history.Permit {
		if len(now) > last.took.Limit {
			return now
		}
		return nil
	}
	for _, h := range now[:len(now)-1] {
		if h.kind != history.Reader || last.kind != history.Reader {
			return []hold{h, last}
		}
	}
	return nil
}

func overlap(now []hold) string {
	last := now[len(now)-1]
	end := slices.MinFunc(now, func(a, b hold) int { return cmp.Compare(a.end, b.end) }).end
	return fmt.Sprintf("%d hold it together for at least %d µs", len(now), (end-last.start)/1000)
}

func events(holds []hold) []history.Event {
	list := make([]history.Event, len(holds))
	for i, h := range holds {
		list[i] = h.took
	}
	return list
}
