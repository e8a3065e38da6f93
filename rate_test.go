package zamok_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// Clocks may differ by 1 %. A waiter far behind that last asked long ago, is told
// late, and is cut off then must still stop before the server lets go.
func TestAFastServerClockIsAllowedFor(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		release := s.Hold("x")
		var stop, cut atomic.Bool
		go func() {
			for !stop.Load() {
				pass(100 * time.Millisecond)
				s.Step(time.Millisecond)
			}
		}()
		for range 59 {
			m := s.Client().Mutex("x", nil)
			go func() { _ = m.Do(t.Context(), func(context.Context) error { return nil }) }()
			pass(time.Millisecond)
		}
		last := s.Client()
		got := waiting(t, last.Mutex("x", nil))
		s.InterceptMessage(func(channel, payload string) memory.MessageFault {
			if strings.Contains(channel, last.ID()) && strings.HasPrefix(payload, "grant") {
				return memory.MessageFault{Delay: time.Second}
			}
			return memory.MessageFault{}
		})
		s.Intercept(func(driver.Call) memory.Fault { return memory.Fault{DropRequest: cut.Load()} })
		pass(100 * time.Second)
		release()
		l := <-got
		cut.Store(true)
		<-l.Context().Done()
		if _, ok := s.TTL("lock:x"); !ok {
			t.Error("the context ended after the server had let go")
		}
		cut.Store(false)
		stop.Store(true)
		pass(time.Second)
	})
}

func TestWaitIsKeptWhenTheServerHangs(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hang()
		start := time.Now()
		_, err := s.Client().Mutex("x", &zamok.MutexConfig{Wait: 200 * time.Millisecond}).Lock(t.Context())
		if took := time.Since(start); took > 500*time.Millisecond || err == nil {
			t.Errorf("Wait of 200ms: %v, %v", took, err)
		}
		start = time.Now()
		_, err = s.Client().Mutex("x", nil).TryLock(t.Context())
		if took := time.Since(start); took > 5500*time.Millisecond || err == nil {
			t.Errorf("GiveUp of 5s: %v, %v", took, err)
		}
	})
}
