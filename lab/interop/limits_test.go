package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/zamok-go/zamok"
)

// TestRedsyncOnSeveralServersIsNotShared: a majority of servers is another lock
// than one key on one of them.
func TestRedsyncOnSeveralServersIsNotShared(t *testing.T) {
	t.Parallel()
	var servers []server
	var pools []redsyncredis.Pool
	for range 3 {
		s := startServer(t)
		servers = append(servers, s)
		pools = append(pools, goredis.NewPool(s.redis(t)))
	}
	lease := tryLock(t, servers[0].shared(t, "job", time.Minute))
	mutex := redsync.New(pools...).NewMutex("job", redsync.WithExpiry(time.Minute), redsync.WithTimeoutFactor(0.5))
	if err := mutex.LockContext(t.Context()); err != nil {
		t.Fatalf("redsync needs 2 servers of 3 and has them: %v", err)
	}
	if err := lease.Check(t.Context()); err != nil {
		t.Errorf("Check: %v, want both to hold", err)
	}
}

// TestRueidislockWithAMajorityIsNotShared: with the default KeyMajority of 2 the
// lock is two keys of three. The first of them excludes as long as nothing goes
// wrong, and its loss alone leaves the lock with its holder.
func TestRueidislockWithAMajorityIsNotShared(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	locker := newTestLocker(t, s, time.Minute, 2)
	m := s.shared(t, "rueidislock:0:job", time.Minute)

	lease := tryLock(t, m)
	if _, _, err := locker.TryWithContext(t.Context(), "job"); !errors.Is(err, rueidislock.ErrNotLocked) {
		t.Errorf("while zamok holds the first key: %v", err)
	}
	release(t, lease)

	ctx, cancel, err := locker.WithContext(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	heldByOther(t, m, s.get(t, "rueidislock:0:job"))
	s.MustDo("DEL", "rueidislock:0:job")
	lease = tryLock(t, m)
	span(500 * time.Millisecond) // the locker hears of the key at once
	if err := errors.Join(ctx.Err(), lease.Check(t.Context())); err != nil {
		t.Errorf("%v, want both to hold", err)
	}
}

func newTestLocker(t *testing.T, s server, ttl time.Duration, majority int32) rueidislock.Locker {
	t.Helper()
	locker, err := newLocker(s.Addr(), "rueidislock", ttl, majority)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locker.Close)
	return locker
}

func TestRueidislockTakesByForce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const ttl = 4 * time.Second
	lease := tryLock(t, s.shared(t, "rueidislock:0:job", ttl))
	_, cancel, err := newTestLocker(t, s, time.Minute, 1).ForceWithContext(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	receive(t, lease.Context().Done(), "end of the lease")
	if took := time.Since(start); took > ttl {
		t.Errorf("zamok's holder is told after %v, want it by its next renewal", took)
	}
	value := s.get(t, "rueidislock:0:job")
	lostTo(t, "the lease's context", context.Cause(lease.Context()), value)
	lostTo(t, "Release", lease.Release(t.Context()), value)
	cancel()
}

// TestRedislockTakesWhatBeginsWithItsToken: redislock lets a holder obtain its
// own lock again, and takes for its own whatever begins with its token.
func TestRedislockTakesWhatBeginsWithItsToken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	lease := tryLock(t, s.shared(t, "job", time.Minute))
	for _, token := range []string{"", "host-7"} {
		_, err := redislock.Obtain(t.Context(), s.redis(t), "job", time.Minute, &redislock.Options{Token: token})
		if !errors.Is(err, redislock.ErrNotObtained) {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	_, err := redislock.Obtain(t.Context(), s.redis(t), "job", time.Minute, &redislock.Options{Token: "z1"})
	if err != nil {
		t.Fatalf("with the token z1: %v", err)
	}
	lostTo(t, "Check", lease.Check(t.Context()), "z1")
}

// TestOldClientsOvertake: who polls stands in no queue, so one that comes while
// the key is free is before those that have waited for longer.
func TestOldClientsOvertake(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	old := newPlainParty(s.redis(t))
	take := func() bool {
		ok, err := old.try(t.Context(), "job", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	give := func() {
		if _, err := old.release(t.Context(), "job"); err != nil {
			t.Fatal(err)
		}
	}
	m := s.shared(t, "job", 0)
	for range 20 { // zamok may happen to ask in between
		if !take() {
			t.Fatal("the lock is not free")
		}
		result := goLock(t, s, m, "job")
		give()
		overtook := take()
		if overtook {
			give()
		}
		release(t, granted(t, result).lease)
		if overtook {
			return
		}
	}
	t.Error("zamok's waiter came first each of 20 times")
}

// TestOldClientsGetNothingWhileZamokQueues: a release passes the lock on in the
// same step, so the key is never free while one of zamok's waits.
func TestOldClientsGetNothingWhileZamokQueues(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	a, b := s.shared(t, "job", 0), s.shared(t, "job", 0)
	lease := tryLock(t, a)
	got := make(chan error, 1)
	go func() { got <- newPlainParty(s.redis(t)).lock(t.Context(), "job", time.Minute) }()
	for range 100 {
		a, b = b, a
		result := goLock(t, s, a, "job")
		release(t, lease)
		lease = granted(t, result).lease
	}
	if len(got) > 0 {
		t.Fatal("the old client has it while zamok passes it on")
	}
	release(t, lease)
	if err := receive(t, got, "lock of the old client"); err != nil {
		t.Error(err)
	}
}

// TestWaitersAskFourTimesASecond: all of zamok's waiters together, since only the
// first of them asks so often.
func TestWaitersAskFourTimesASecond(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.MustDo("SET", "job", "b3c1a9", "NX", "PX", "600000")
	for range 5 {
		goLock(t, s, s.shared(t, "job", 0), "job")
	}
	const seconds = 3
	before, start := s.Commands(), time.Now()
	span(seconds * time.Second)
	asked, took := s.Commands().Since(before)["evalsha"], time.Since(start)
	// Each takes 10 % more or less; the other four ask once in 4 s or less often.
	if most := int64(took/poll*10/9) + 4; asked > most || asked < seconds*4/factor {
		t.Errorf("five waiters asked %d times in %v, want 4 times a second", asked, took)
	}
}

// TestALockWithoutATTL is what Python's redis.lock makes by default: it ends only
// when somebody deletes it.
func TestALockWithoutATTL(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	other := run(t, python(t, s))
	other.must("try", "job", "0")
	value := s.get(t, "job")
	other.kill()
	m := s.zamok(t, zamok.Config{}).Mutex("job", &zamok.MutexConfig{Key: "job", Wait: 3 * poll})
	if held := heldByOther(t, m, value); !held.NoTTL {
		t.Errorf("%v does not say that the lock never expires", held)
	}
	_, err := m.Lock(t.Context())
	var held *zamok.HeldError
	if !errors.As(err, &held) || !held.NoTTL || held.Waited < 3*poll {
		t.Errorf("Lock: %v, want a *HeldError that says that it never expires", err)
	}
	s.MustDo("DEL", "job")
	release(t, lock(t, s.shared(t, "job", 0)))
}
