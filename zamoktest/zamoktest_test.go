package zamoktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// nightly is the kind of code that a user tests: it stops when its lock is lost.
func nightly(ctx context.Context, c *zamok.Client, step func()) error {
	return c.Mutex("nightly", nil).TryDo(ctx, func(ctx context.Context) error {
		for range 100 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Second):
				step()
			}
		}
		return nil
	})
}

func TestStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		steps := 0
		err := nightly(t.Context(), server.Client(), func() {
			if steps++; steps == 30 {
				server.Lose("nightly")
			}
		})
		if !errors.Is(err, zamok.ErrLost) || steps > 35 {
			t.Errorf("%d steps, then %v; want an end within a third of the TTL of 15s", steps, err)
		}
	})
}

func TestDoesNothingWhileARivalHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, &zamok.Config{Prefix: "app:"})
		release := server.Hold("nightly")
		if err := nightly(t.Context(), server.Client(), func() { t.Error("it ran") }); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		release()
		steps := 0
		if err := nightly(t.Context(), server.Client(), func() { steps++ }); err != nil || steps != 100 {
			t.Errorf("%d steps, %v", steps, err)
		}
	})
}

func TestRidesOutAHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		steps := 0
		err := nightly(t.Context(), server.Client(), func() {
			switch steps++; steps {
			case 10:
				server.Hang()
			case 15:
				server.Unhang()
			}
		})
		if err != nil || steps != 100 {
			t.Errorf("%d steps, %v", steps, err)
		}
	})
}

func TestTwinOfAGuardedScript(t *testing.T) {
	count := zamok.NewScript("count", `return redis.call('INCR', KEYS[1])`)
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		server.Define(count, func(tx *memory.Tx, keys, _ []string, _ int64) (any, error) {
			return tx.Incr(keys[0], 1)
		})
		lease, err := server.Client().Mutex("n", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v, err := lease.Run(t.Context(), count, []string{"runs"}); v != int64(1) || err != nil {
			t.Errorf("Run = %v, %v", v, err)
		}
	})
}
