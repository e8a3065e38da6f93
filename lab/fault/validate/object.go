package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// lockState is a lock as its server has it, as far as holders can tell.
type lockState struct {
	holders []holder // never changed in place
	fence   int64    // the largest
	writer  int64    // the largest of those that readers must exceed
}

// holder is a lease that the server may have: one that is over without a release stays
// until somebody comes whom it would have kept out.
type holder struct {
	lease string
	kind  history.Kind
	until int64
}

// lockStep is an operation of a lock, with the last deadline that its lease was ever seen
// to have, and from when on its holder may take it for lost.
type lockStep struct {
	history.Event
	until, given int64
}

// lockObject is a lock that one lease has, or several readers, or as many leases as there
// are permits. Who keeps another out does so until it was released, or until the grant of
// the other returned after its deadline.
var lockObject = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		return state.(lockState).step(input.(lockStep))
	},
	Equal: func(a, b any) bool {
		s, o := a.(lockState), b.(lockState)
		return s.fence == o.fence && s.writer == o.writer && slices.Equal(s.holders, o.holders)
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(lockStep)
		return fmt.Sprintf("%s %s: %s %d", e.Lease, e.Op, e.Outcome, e.Fence)
	},
	DescribeState: func(state any) string {
		s := state.(lockState)
		text := fmt.Sprint(s.fence)
		for _, h := range s.holders {
			text += fmt.Sprintf(" %s of %s", h.kind, h.lease)
		}
		return text
	},
}

func (s lockState) step(e lockStep) (bool, lockState) {
	mine := s.has(e.Lease)
	switch e.Op {
	case history.Acquire, history.Try:
		room, left := s.admit(e)
		return room && s.exceeded(e), left.with(e)
	case history.Resume:
		return s.has(e.From) && s.exceeded(e), s.without(e.From).with(e)
	case history.Downgrade: // as with a release, what is not known may have been at any time
		if !mine {
			return e.Outcome != history.OK, s
		}
		if e.Outcome == history.Lost {
			return e.given < e.Return, s.without(e.Lease)
		}
		return true, s.without(e.Lease).add(holder{e.Lease, history.Reader, e.until})
	case history.Release:
		switch e.Outcome {
		case history.OK:
			return mine, s.without(e.Lease)
		case history.Lost:
			return !mine || e.given < e.Return, s.without(e.Lease)
		default: // it may come at any time, or never
			return true, s.without(e.Lease)
		}
	}
	if e.Outcome == history.Lost {
		return !mine || e.given < e.Return, s
	}
	return mine, s // it was seen that it is held
}

// admit reports whether e may be granted beside those who hold, and returns the state
// without those who must be gone for that.
func (s lockState) admit(e lockStep) (bool, lockState) {
	gone := func(h holder) bool { return h.until < e.Return }
	out := func(h holder) bool { return true } // is kept out by e
	switch e.Kind {
	case history.Permit:
		var here int
		for _, h := range s.holders {
			if !gone(h) {
				here++
			}
		}
		return here < e.Limit, s // which of those that are due are gone is not known
	case history.Reader:
		out = func(h holder) bool { return h.kind != history.Reader }
	}
	room := !slices.ContainsFunc(s.holders, func(h holder) bool { return out(h) && !gone(h) })
	s.holders = slices.DeleteFunc(slices.Clone(s.holders), out)
	return room, s
}

// exceeded reports whether the fence of e is large enough.
func (s lockState) exceeded(e lockStep) bool {
	if e.Kind == history.Reader {
		return e.Fence > s.writer
	}
	return e.Fence > s.fence
}

func (s lockState) with(e lockStep) lockState {
	s.fence = max(s.fence, e.Fence)
	if e.Kind != history.Reader {
		s.writer = s.fence
	}
	return s.add(holder{e.Lease, e.Kind, e.until})
}

// add keeps the holders in order, so that equal states have them in the same.
func (s lockState) add(h holder) lockState {
	i, _ := s.find(h.lease)
	s.holders = slices.Insert(slices.Clone(s.holders), i, h)
	return s
}

func (s lockState) without(lease string) lockState {
	if i, ok := s.find(lease); ok {
		s.holders = slices.Delete(slices.Clone(s.holders), i, i+1)
	}
	return s
}

func (s lockState) has(lease string) bool {
	_, ok := s.find(lease)
	return ok
}

func (s lockState) find(lease string) (int, bool) {
	return slices.BinarySearchFunc(s.holders, lease, func(h holder, lease string) int { return cmp.Compare(h.lease, lease) })
}

// objects searches for an order of the operations of each lock.
func (r *Report) objects(lives []life, limits Limits) {
	names := make(map[string][]porcupine.Operation)
	for _, l := range lives {
		name := space(l.took.Kind, l.took.Name)
		for _, e := range l.events {
			switch e.Op {
			case history.Release, history.Downgrade:
				if !e.Outcome.Definite() {
					e.Return = never
				}
			default:
				held := e.Outcome == history.OK && (e.Op.Takes() || e.Op == history.Look || e.Op == history.Renew || guarded(e))
				if !held && (e.ID != l.lost.ID || e.Proc != l.lost.Proc || l.meant()) {
					continue
				}
			}
			names[name] = append(names[name], porcupine.Operation{Input: lockStep{e, l.until, l.until - int64(limits.Grace)}, Call: e.Call, Return: e.Return})
		}
	}
	for name, operations := range names {
		r.search(Object, name, lockObject, operations, limits)
	}
}
