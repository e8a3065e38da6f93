package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/zamok-go/zamok"
)

// TestOldLeasesEndByThemselves: redsync and redislock extend only when they are
// told to, so work that takes longer than the TTL goes on without the lock.
func TestOldLeasesEndByThemselves(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.redis(t)
	const ttl = 500 * time.Millisecond
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex("a", redsync.WithExpiry(ttl), redsync.WithTimeoutFactor(0.5))
	if err := mutex.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	obtained, err := redislock.Obtain(t.Context(), rdb, "b", ttl, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := lock(t, s.shared(t, "a", 0)), lock(t, s.shared(t, "b", 0))
	if ok, err := mutex.ExtendContext(t.Context()); ok {
		t.Errorf("redsync extended what zamok holds: %v", err)
	}
	if err := obtained.Refresh(t.Context(), ttl, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("redislock refreshed what zamok holds: %v", err)
	}
	release(t, a)
	release(t, b)
}

// TestRueidislockRenews as zamok does, so its KeyValidity is what TTL is.
func TestRueidislockRenews(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const ttl = 2 * time.Second
	ctx, cancel, err := newTestLocker(t, s, ttl, 1).WithContext(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	value := s.get(t, "rueidislock:0:job")
	span(ttl + ttl/2)
	heldByOther(t, s.shared(t, "rueidislock:0:job", 0), value)
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	cancel()
}

// TestOldRetriesEnd by their own counts, where zamok waits as long as its ctx or
// MutexConfig.Wait.
func TestOldRetriesEnd(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.redis(t)
	lease := tryLock(t, s.shared(t, "job", time.Minute))
	ours := goLock(t, s, s.shared(t, "job", 0), "job")

	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex("job", redsync.WithTries(3), redsync.WithTimeoutFactor(0.5))
	var taken *redsync.ErrTaken
	if err := mutex.LockContext(t.Context()); !errors.As(err, &taken) {
		t.Errorf("redsync after its tries: %v", err)
	}
	if _, err := redislock.Obtain(t.Context(), rdb, "job", time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("redislock without a RetryStrategy: %v", err)
	}
	const ttl = 300 * time.Millisecond
	start := time.Now()
	_, err := redislock.Obtain(t.Context(), rdb, "job", ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(retry)})
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took < ttl {
		t.Errorf("redislock with one, after %v: %v", took, err)
	}

	if len(ours) > 0 {
		t.Error("zamok's Lock gave up")
	}
	m := s.zamok(t, zamok.Config{}).Mutex("job", &zamok.MutexConfig{Key: "job", Wait: time.Second})
	if _, err := m.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) { // and it is connected now
		t.Errorf("TryLock: %v", err)
	}
	_, err = m.Lock(t.Context())
	var held *zamok.HeldError
	if !errors.As(err, &held) || held.Waited < time.Second || held.Holder.Token != lease.Token() {
		t.Errorf("zamok after its Wait: %v", err)
	}
	release(t, lease)
	release(t, granted(t, ours).lease)
}

// TestACancelledWait: redsync does not say that it was the context.
func TestACancelledWait(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.MustDo("SET", "job", "b3c1a9", "NX", "PX", "600000")
	wait := func(lock func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return lock(ctx)
	}
	mutex := redsync.New(goredis.NewPool(s.redis(t))).NewMutex("job")
	if err := wait(mutex.LockContext); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("redsync: %v", err)
	}
	m := s.shared(t, "job", 0)
	heldByOther(t, m, "b3c1a9") // so it is connected
	err := wait(func(ctx context.Context) error {
		_, err := m.Lock(ctx)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zamok.ErrHeld) {
		t.Errorf("zamok: %v", err)
	}
}

// TestExtendNeverShortens, and redislock's Refresh and redsync's Extend do.
func TestExtendNeverShortens(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.redis(t)
	lock, err := redislock.Obtain(t.Context(), rdb, "job", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Refresh(t.Context(), 10*time.Second, nil); err != nil || s.pttl(t, "job") > 10*time.Second {
		t.Errorf("redislock: %v left, %v", s.pttl(t, "job"), err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex("job", redsync.WithExpiry(time.Minute), redsync.WithTimeoutFactor(0.5))
	if err := mutex.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	redsync.WithExpiry(10 * time.Second).Apply(mutex)
	if ok, err := mutex.ExtendContext(t.Context()); !ok || s.pttl(t, "job") > 10*time.Second {
		t.Errorf("redsync: %v left, %v", s.pttl(t, "job"), err)
	}
	if _, err := mutex.UnlockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := tryLock(t, s.shared(t, "job", time.Minute))
	if err := lease.Extend(t.Context(), 10*time.Second); err != nil || s.pttl(t, "job") < 30*time.Second {
		t.Errorf("zamok: %v left, %v", s.pttl(t, "job"), err)
	}
	release(t, lease)
}

// TestMetadataIsShown: of a foreign holder zamok knows its value and no more.
func TestMetadataIsShown(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	lock, err := redislock.Obtain(t.Context(), s.redis(t), "job", time.Minute, &redislock.Options{Metadata: " host-7"})
	if err != nil {
		t.Fatal(err)
	}
	heldByOther(t, s.shared(t, "job", 0), lock.Token()+" host-7")
}

// TestFencesGoOn: an old holder has no fence, and those after it have larger ones
// than those before it.
func TestFencesGoOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	m := s.shared(t, "job", 0)
	var last int64
	for range 3 {
		lease := tryLock(t, m)
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		release(t, lease)
		lock, err := redislock.Obtain(t.Context(), s.redis(t), "job", time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
