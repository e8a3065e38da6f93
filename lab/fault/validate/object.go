package validate

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// lockState is a lock as its server has it, as far as holders can tell. A lease that is
// over without a release stays until somebody comes after it.
type lockState struct {
	lease string
	until int64
	fence int64
}

// lockStep is an operation of a lock, with the last deadline that its lease was ever seen
// to have, and from when on its holder may take it for lost.
type lockStep struct {
	history.Event
	until, given int64
}

// lockObject is a lock that at most one lease has. A lease is followed by another when
// it was released, or when the other's grant returned after its deadline.
var lockObject = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		return state.(lockState).step(input.(lockStep))
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(lockStep)
		return fmt.Sprintf("%s %s: %s %d", e.Lease, e.Op, e.Outcome, e.Fence)
	},
	DescribeState: func(state any) string {
		s := state.(lockState)
		return fmt.Sprintf("%s %d", s.lease, s.fence)
	},
}

func (s lockState) step(e lockStep) (bool, lockState) {
	mine := s.lease == e.Lease
	due := s.until < e.Return
	switch e.Op {
	case history.Acquire, history.Try:
		return (s.lease == "" || due) && e.Fence > s.fence, lockState{e.Lease, e.until, e.Fence}
	case history.Resume:
		return s.lease == e.From && e.Fence > s.fence, lockState{e.Lease, e.until, e.Fence}
	case history.Release:
		free := s
		if mine {
			free = lockState{fence: s.fence}
		}
		switch e.Outcome {
		case history.OK:
			return mine, free
		case history.Lost:
			return !mine || e.given < e.Return, free
		default: // it may come at any time, or never
			return true, free
		}
	default: // it was seen that it is held
		return mine, s
	}
}

// objects searches for an order of the operations of each mutex.
func (r *Report) objects(h *history.History, all []hold, limits Limits) {
	until := make(map[string]int64)
	for _, one := range all {
		until[one.took.Lease] = one.until
	}
	names := make(map[string][]porcupine.Operation)
	mutexes := make(map[string]string) // by lease
	for _, e := range h.Events {
		name, ok := mutexes[e.Lease]
		switch {
		case e.Kind == history.Mutex && e.Op.Takes() && e.Outcome == history.OK:
			name = e.Name
			mutexes[e.Lease] = name
		case !ok:
			continue
		case e.Op == history.Release:
			if !e.Outcome.Definite() {
				e.Return = never
			}
		case e.Outcome != history.OK || e.Op != history.Look && e.Op != history.Renew && e.Op != history.Write:
			continue
		case e.Op == history.Write && e.Kind != history.Guarded:
			continue
		}
		names[name] = append(names[name], porcupine.Operation{Input: lockStep{e, until[e.Lease], until[e.Lease] - int64(limits.Grace)}, Call: e.Call, Return: e.Return})
	}
	for name, operations := range names {
		r.search(Object, name, lockObject, operations, limits)
	}
}
