package drivertest

import (
	"slices"
	"sync"
)

// Fault is something that a Proxy does once, to the next command or push that
// matches.
type Fault struct {
	proxy   *Proxy
	kind    faultKind
	match   Match
	fired   chan struct{}
	release chan struct{}

	releaseOnce sync.Once
}

type faultKind int

const (
	cutBefore faultKind = iota + 1
	cutAfter
	cutInside
	hold
	holdReply
	dropPush
	holdPush
)

// CutBefore closes the connection of the next command that matches before the
// command reaches the server. Commands that were sent before it are answered
// first; what follows it on that connection is not executed.
func (p *Proxy) CutBefore(m Match) *Fault { return p.arm(cutBefore, m) }

// CutAfter closes the connection of the next command that matches after the
// server executed it; the reply is never seen. Commands that were sent before
// it are answered first; what follows it on that connection is not executed.
func (p *Proxy) CutAfter(m Match) *Fault { return p.arm(cutAfter, m) }

// CutInside is CutAfter, but that the first half of the reply is seen before the
// connection ends.
func (p *Proxy) CutInside(m Match) *Fault { return p.arm(cutInside, m) }

// Hold keeps the next command that matches, and what follows it on that
// connection, from the server until Release. The command is executed then even
// if its client has closed the connection meanwhile: that is how a request that
// was given up arrives late.
func (p *Proxy) Hold(m Match) *Fault { return p.arm(hold, m) }

// HoldReply lets the server execute the next command that matches, and keeps
// the reply, and what follows it on that connection, until Release.
func (p *Proxy) HoldReply(m Match) *Fault { return p.arm(holdReply, m) }

// DropPush loses the next pub/sub message that matches. The connection lives
// on.
func (p *Proxy) DropPush(m Match) *Fault { return p.arm(dropPush, m) }

// HoldPush keeps the next pub/sub message that matches, and what follows it on
// that connection, until Release.
func (p *Proxy) HoldPush(m Match) *Fault { return p.arm(holdPush, m) }

func (p *Proxy) arm(kind faultKind, m Match) *Fault {
	f := &Fault{proxy: p, kind: kind, match: m, fired: make(chan struct{}), release: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, f)
	return f
}

// Fired is closed when it has happened: the connection was cut, or the command,
// reply or push is being held. After CutAfter, CutInside and HoldReply, the server has
// executed the command by then.
func (f *Fault) Fired() <-chan struct{} { return f.fired }

// Release lets pass what is held. Before the fault has fired it makes the fault
// hold nothing. A second call does nothing.
func (f *Fault) Release() { f.releaseOnce.Do(func() { close(f.release) }) }

// Cancel disarms a fault that has not matched anything yet, and reports whether
// it did.
func (f *Fault) Cancel() bool {
	p := f.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.rules, f)
	if i < 0 {
		return false
	}
	p.rules = slices.Delete(p.rules, i, i+1)
	return true
}

// take removes and returns the first armed fault that matches.
func (p *Proxy) take(push bool, args []string) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.rules {
		if push == (f.kind == dropPush || f.kind == holdPush) && f.match(args) {
			p.rules = slices.Delete(p.rules, i, i+1)
			return f
		}
	}
	return nil
}
