package zamok_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestATokenOfAnotherLockChangesNothing: also when this client holds that one.
func TestATokenOfAnotherLockChangesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		a := lock(t, c.Mutex("a", nil))
		if err := c.Mutex("b", nil).ReleaseToken(t.Context(), a.Token()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("ReleaseToken: %v", err)
		}
		if err := c.Mutex("b", nil).ExtendToken(t.Context(), a.Token(), time.Hour); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("ExtendToken: %v", err)
		}
		if ttl, _ := s.TTL("lock:a"); ttl != 15*time.Second || a.Err() != nil {
			t.Errorf("lock a: %v left, %v", ttl, a.Err())
		}
		release(t, a)
	})
}

// TestReleaseTokenOfALeaseThatIsOver: a lost request is no release.
func TestReleaseTokenOfALeaseThatIsOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		token, err := lock(t, s.Client().Mutex("job", nil)).Detach()
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		s.Hold("job")
		var n atomic.Int32
		s.Intercept(func(c driver.Call) memory.Fault {
			return memory.Fault{DropRequest: (c.Script == lua.Release || c.Script == lua.Renew) && n.Add(1) == 1}
		})
		if err := s.Client().Mutex("job", nil).ReleaseToken(t.Context(), token); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("err = %v, want that it had been over", err)
		}
	})
}

// TestReleaseTokenWhoseAnswerIsLost: the second try finds nothing, and that is
// what the first did.
func TestReleaseTokenWhoseAnswerIsLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		token, err := lock(t, s.Client().Mutex("job", nil)).Detach()
		if err != nil {
			t.Fatal(err)
		}
		var n atomic.Int32
		s.Intercept(func(c driver.Call) memory.Fault {
			return memory.Fault{DropReply: c.Script == lua.Release && n.Add(1) == 1}
		})
		if err := s.Client().Mutex("job", nil).ReleaseToken(t.Context(), token); err != nil {
			t.Error(err)
		}
		if s.Held("job") {
			t.Error("it is held")
		}
	})
}

// TestResumingAnOwnGift: what was taken back is not listed as given away.
func TestResumingAnOwnGift(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		m := c.Mutex("job", &zamok.MutexConfig{TTL: time.Hour})
		token, err := lock(t, m).Detach()
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Resume(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if r := said(t, s, c.ID()); r.Holding != 1 || r.Held[0].Given {
			t.Errorf("says %+v", r)
		}
		release(t, l)
	})
}
