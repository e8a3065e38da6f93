package zamok_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// What docs/guarantees.md says that does not hold: so that it says enough, and no more.

// A quarantine follows a loss of all data: a key that is deleted alone is none, and a clock
// that is set forward ends one early. Two hold then.
func TestWhatAQuarantineDoesNotSee(t *testing.T) {
	for name, unseen := range map[string]func(s *zamoktest.Server){
		"a key that is deleted": func(s *zamoktest.Server) { s.Del("lock:job") },
		"a clock that is set forward after a loss": func(s *zamoktest.Server) {
			s.Wipe()
			_, _ = s.Client().Mutex("other", nil).TryLock(context.Background()) // it begins
			s.Step(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened(t, func(t *testing.T, s *zamoktest.Server) {
				older := lock(t, s.Client().Mutex("job", nil))
				unseen(s)
				newer, err := s.Client().Mutex("job", nil).TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				bothHold(t, older, newer, 5*time.Second)
				release(t, newer)
			})
		})
	}
}

// When the holder and those before one who waits die together, nobody hands the lock over:
// it stays free for 2 s at most for each, and for who waits.
func TestTheDeadBeforeOneWhoWaits(t *testing.T) {
	for _, dead := range []int{0, 1, 3, 6} {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			set, err := keys.ForName("", "job")
			if err != nil {
				t.Fatal(err)
			}
			holder := lock(t, s.Client().Mutex("job", nil))
			for i := range dead {
				gone := fmt.Sprintf("gone/%d/x", i+1)
				args := []string{"z1/" + gone + "/1", "15000", "zamok:inbox:" + gone, "0", "w"}
				if _, err := s.Eval(t.Context(), driver.Call{Script: lua.Acquire, Keys: set.Main, Args: args, Limit: time.Second}); err != nil {
					t.Fatal(err)
				}
			}
			got := waiting(t, s.Client().Mutex("job", nil))
			if n := s.Waiters("job"); n != dead+1 {
				t.Fatalf("%d stand in the queue, want %d", n, dead+1)
			}
			holder.Detach()
			start := time.Now()
			l := <-got
			most := time.Duration(dead+1) * 2 * time.Second
			if free := time.Since(start) - 15*time.Second; free > most+most/10 { // they do not ask all at a time
				t.Errorf("%d dead before it: the lock was free for %v", dead, free)
			}
			release(t, l)
		})
	}
}
