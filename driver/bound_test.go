package driver

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a library call that looks at no context. It ends when free is closed.
func stuck(free <-chan struct{}) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		<-free
		return "late", nil
	}
}

func TestBoundsReturnWhatTheLibraryReturned(t *testing.T) {
	var b Bounds
	cause := errors.New("cause")
	for range 3 { // the second one uses the first one's timer again
		v, err := b.Call(t.Context(), time.Second, func(context.Context) (any, error) { return 7, cause })
		if v != 7 || err != cause {
			t.Errorf("got %v, %v", v, err)
		}
	}
}

// Each way to end is exact in virtual time, and the goroutine ends when the
// library lets it.
func TestBoundsEnd(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limit   time.Duration
		timeout time.Duration
		cancel  time.Duration
		after   time.Duration
		want    error
	}{
		{"limit", 2 * time.Second, time.Minute, time.Minute, 2 * time.Second, context.DeadlineExceeded},
		{"deadline", time.Minute, 3 * time.Second, time.Minute, 3 * time.Second, context.DeadlineExceeded},
		{"cancel", time.Minute, time.Minute, 4 * time.Second, 4 * time.Second, context.Canceled},
		{"none", 0, time.Minute, time.Minute, 0, context.DeadlineExceeded},
		{"negative", -1, time.Minute, time.Minute, 0, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b Bounds
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer time.AfterFunc(tt.cancel, cancel).Stop()
				free := make(chan struct{})
				start := time.Now()
				_, err := b.Call(ctx, tt.limit, stuck(free))
				if took := time.Since(start); !errors.Is(err, tt.want) || took != tt.after {
					t.Errorf("%v after %v", err, took)
				}
				close(free)
				cancel()
			})
		})
	}
}

// The library's context carries the caller's values, ends when the call is
// given up and not before, and shows no deadline.
func TestBoundsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bounds
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		ended := make(chan error)
		_, err := b.Call(ctx, time.Second, func(ctx context.Context) (any, error) {
			if _, ok := ctx.Deadline(); ok || ctx.Value(key{}) != "value" || ctx.Err() != nil {
				t.Errorf("the library's context: %v", ctx)
			}
			child, cancel := context.WithCancel(ctx) // as a dial makes one
			defer cancel()
			<-child.Done()
			ended <- ctx.Err()
			return nil, nil
		})
		if got := <-ended; got != context.DeadlineExceeded || !errors.Is(err, got) {
			t.Errorf("the library saw %v, the caller %v", got, err)
		}
	})
}

// A dial that another caller gave up fails ours: that is not our context.
func TestBoundsForeignCancel(t *testing.T) {
	var b Bounds
	foreign := &net.OpError{Op: "dial", Err: context.Canceled}
	_, err := b.Call(t.Context(), time.Second, func(context.Context) (any, error) { return nil, foreign })
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkBounds(b *testing.B) {
	var bounds Bounds
	ctx := b.Context()
	f := func(context.Context) (any, error) { return nil, nil }
	b.ReportAllocs()
	for b.Loop() {
		bounds.Call(ctx, time.Second, f)
	}
}
