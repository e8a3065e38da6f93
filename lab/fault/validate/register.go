package validate

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// registerState is what a register holds, and the fence of who wrote it.
type registerState struct{ value, fence int64 }

// register takes writes by holders whose fence is no smaller than that of the last.
var register = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, e := state.(registerState), input.(history.Event)
		if e.Op == history.Read {
			return s == registerState{e.Value, e.Fence}, s
		}
		return e.Fence >= s.fence, registerState{e.Value, e.Fence}
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(history.Event)
		return fmt.Sprintf("%s %d with fence %d", e.Op, e.Value, e.Fence)
	},
	DescribeState: func(state any) string {
		s := state.(registerState)
		return fmt.Sprintf("%d with fence %d", s.value, s.fence)
	},
}

// registers searches for an order of the writes and reads of each register. All values
// that were written are different.
func (r *Report) registers(h *history.History, limits Limits) {
	type key struct {
		kind history.Kind
		name string
	}
	names := make(map[key][]history.Event)
	took := make(map[string]history.Event) // by lease
	for _, e := range h.Events {
		if e.Op.Takes() && e.Outcome == history.OK {
			took[e.Lease] = e
		}
		if e.Op == history.Write || e.Op == history.Read && e.Outcome == history.OK {
			k := key{e.Kind, e.Name}
			names[k] = append(names[k], e)
		}
	}
	properties := map[history.Kind]Property{history.Guarded: Guarded, history.Shared: Guarded, history.Outside: Outside}
	for k, events := range names {
		property := properties[k.kind]
		if writes := r.writes(property, k.name, events); k.kind != history.Shared {
			r.search(property, k.name, register, writes, limits)
		}
		if property == Outside {
			r.shutOut(k.name, events, took)
		}
	}
}

// writes returns the operations of a register that had an effect. A write whose outcome
// is unknown had one, before it was read, if it was read.
func (r *Report) writes(p Property, name string, events []history.Event) []porcupine.Operation {
	read := make(map[int64]history.Event) // the first read of each value
	for _, e := range events {
		if first, ok := read[e.Value]; e.Op == history.Read && (!ok || e.Return < first.Return) {
			read[e.Value] = e
		}
	}
	var operations []porcupine.Operation
	for _, e := range events {
		first, seen := read[e.Value]
		switch {
		case e.Op == history.Read || e.Outcome == history.OK:
		case !seen:
			continue
		case e.Outcome.Definite():
			r.violated(p, name, fmt.Sprintf("%d was read, of which the writer was told that it was not written", e.Value), e, first)
			continue
		default:
			e.Return = max(first.Return, e.Call)
		}
		operations = append(operations, porcupine.Operation{Input: e, Call: e.Call, Return: e.Return})
	}
	return operations
}

// shutOut looks for writes that were refused for nothing: nobody with a larger fence had
// tried to write, but some whose leases were granted before.
func (r *Report) shutOut(name string, events []history.Event, took map[string]history.Event) {
	for _, e := range events {
		if e.Op != history.Write || e.Outcome != history.Lost {
			continue
		}
		refused := slices.ContainsFunc(events, func(w history.Event) bool {
			return w.Op == history.Write && w.Fence > e.Fence && w.Call <= e.Return && took[w.Lease].Return >= took[e.Lease].Call
		})
		if !refused {
			r.violated(Outside, name, fmt.Sprintf("the fence %d was refused, and nobody came after it", e.Fence), e)
		}
	}
}
