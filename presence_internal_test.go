package zamok

import (
	"strconv"
	"testing"
	"time"

	"github.com/zamok-go/zamok/internal/proc"
)

// TestGiftsAreForgotten: a process that gives away what it takes, all day long,
// keeps as many as there are at one time.
func TestGiftsAreForgotten(t *testing.T) {
	c := &Client{}
	c.clock.init()
	k := &c.keeper
	k.init(c)
	k.closed = true // no announcements
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range 100_000 {
		k.give(gift{lease: proc.Lease{Token: strconv.Itoa(i)}, ends: c.clock.now().add(-time.Second)})
	}
	if n := len(k.given); n > 200 {
		t.Errorf("%d are kept that are over", n)
	}
	for i := range 100_000 { // that none can be dropped must not make each as slow as all
		k.give(gift{lease: proc.Lease{Token: strconv.Itoa(i)}, ends: c.clock.now().add(time.Hour)})
	}
	if n := len(k.given); n != 100_000 {
		t.Errorf("%d are kept of 100,000", n)
	}
}
