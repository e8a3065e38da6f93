package drivertest

import (
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// events receives what a subscription reports.
type events struct{ ch chan driver.Event }

func newEvents() *events { return &events{make(chan driver.Event, 100_000)} }

func (ev *events) handle(e driver.Event) { ev.ch <- e }

// next waits for an event.
func (ev *events) next(t testing.TB) driver.Event {
	t.Helper()
	select {
	case e := <-ev.ch:
		return e
	case <-time.After(patience):
		t.Fatalf("no event within %v", patience)
		return driver.Event{}
	}
}

// want waits for an event, which must be of this kind.
func (ev *events) want(t testing.TB, kind driver.EventKind) driver.Event {
	t.Helper()
	e := ev.next(t)
	if e.Kind != kind {
		t.Fatalf("event %v %q %v, want one of kind %v", e.Kind, e.Payload, e.Err, kind)
	}
	return e
}

// wantNone is for after something that makes any event visible.
func (ev *events) wantNone(t testing.TB) {
	t.Helper()
	select {
	case e := <-ev.ch:
		t.Errorf("an event too many: %v %q %v", e.Kind, e.Payload, e.Err)
	default:
	}
}
