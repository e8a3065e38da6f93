package zamok_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestTraceTellsTheStory(t *testing.T) {
	var mu sync.Mutex
	var story []string
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		story = append(story, fmt.Sprintf(format, args...))
	}
	cfg := &zamok.Config{TTL: 3 * time.Second, Trace: &zamok.Trace{
		Waiting:     func(i zamok.WaitingInfo) { tell("waits at %d", i.Place) },
		Acquired:    func(i zamok.AcquiredInfo) { tell("acquired after %v, handed over: %v", i.Waited, i.HandedOver) },
		NotAcquired: func(string, time.Duration, error) { tell("not acquired") },
		Renewed:     func(i zamok.RenewedInfo) { tell("renewed: %v", i.Err) },
		Lost:        func(e *zamok.LostError) { tell("lost: %s", e.Reason) },
		Released:    func(i zamok.ReleasedInfo) { tell("released, handed over: %v, %v", i.HandedOver, i.Err) },
	}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		_, _ = s.Client().Mutex("job", nil).TryLock(t.Context())
		pass(500 * time.Millisecond)
		release(t, first)
		l := <-got
		pass(900 * time.Millisecond)
		s.Lose("job")
		lossOf(t, l)
	})
	want := []string{
		"acquired after 0s, handed over: false", "waits at 1", "not acquired", "released, handed over: true, <nil>",
		"acquired after 500ms, handed over: true", "renewed: <nil>", "lost: key deleted",
	}
	if strings.Join(story, "\n") != strings.Join(want, "\n") {
		t.Errorf("the story is\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(want, "\n"))
	}
}
