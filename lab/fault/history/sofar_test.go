package history

import (
	"testing"
	"time"
)

// A lease that goes on ends now, and so does a wait; what has ended stays as it is.
func TestSoFar(t *testing.T) {
	before := Now()
	h := (&History{Events: []Event{
		{Op: Acquire, Kind: Mutex, Name: "n", Call: 1},
		{Op: Try, Kind: Mutex, Name: "n", Lease: "a", Call: 2, Return: 3, Outcome: OK},
		{Op: Try, Kind: Mutex, Name: "n", Lease: "b", Call: 2, Return: 3, Outcome: OK},
		{Op: Release, Name: "n", Lease: "b", Call: 4, Return: 5, Outcome: OK},
	}}).SoFar()
	if w := h.Events[0]; w.Outcome != Cancelled || w.Return < before {
		t.Errorf("the wait goes on: %+v", w)
	}
	if len(h.Events) != 5 || h.Events[4].Lease != "a" || h.Events[4].Outcome != Lost || h.Events[4].Call < before {
		t.Errorf("a alone ends: %+v", h.Events[2:])
	}
}

func TestTimeOfAStamp(t *testing.T) {
	at := time.Now()
	if off := at.Sub(Time(At(at))).Abs(); off > time.Minute {
		t.Errorf("the time of a stamp is off by %v", off)
	}
}
