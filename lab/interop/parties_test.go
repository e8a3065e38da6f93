package interop

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// retry is how often the other side asks while it waits: often, so that it gets
// its turn in a crowd.
const retry = 10 * time.Millisecond

// redsyncParty waits until it has the lock: by its defaults it gives up after some
// seconds, which TestOldRetriesEnd is about.
type redsyncParty struct {
	rs   *redsync.Redsync
	held map[string]*redsync.Mutex
}

func newRedsyncParty(rdb *redis.Client) party {
	return &redsyncParty{redsync.New(goredis.NewPool(rdb)), map[string]*redsync.Mutex{}}
}

func (p *redsyncParty) mutex(key string, ttl time.Duration) *redsync.Mutex {
	p.held[key] = p.rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(100_000), redsync.WithRetryDelay(retry),
		redsync.WithTimeoutFactor(0.5)) // of the TTL: a busy machine is slow
	return p.held[key]
}

func (p *redsyncParty) try(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	err := p.mutex(key, ttl).TryLockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}

func (p *redsyncParty) lock(ctx context.Context, key string, ttl time.Duration) error {
	return p.mutex(key, ttl).LockContext(ctx)
}

func (p *redsyncParty) release(ctx context.Context, key string) (still, error) {
	ok, err := p.held[key].UnlockContext(ctx)
	return redsyncStill(ok, err)
}

func (p *redsyncParty) extend(ctx context.Context, key string, ttl time.Duration) (still, error) {
	redsync.WithExpiry(ttl).Apply(p.held[key])
	ok, err := p.held[key].ExtendContext(ctx)
	return redsyncStill(ok, err)
}

// redsyncStill: two errors say that the lock is another's or nobody's, and all
// others that nobody knows.
func redsyncStill(ok bool, err error) (still, error) {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return no, nil
	}
	return stillIf(ok), err
}

// redislockParty has a random token for each lock, as by default.
type redislockParty struct {
	client *redislock.Client
	held   map[string]*redislock.Lock
}

func newRedislockParty(rdb *redis.Client) party {
	return &redislockParty{redislock.New(rdb), map[string]*redislock.Lock{}}
}

func (p *redislockParty) obtain(ctx context.Context, key string, ttl time.Duration, opt *redislock.Options) (err error) {
	p.held[key], err = p.client.Obtain(ctx, key, ttl, opt)
	return err
}

func (p *redislockParty) try(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	err := p.obtain(ctx, key, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}

func (p *redislockParty) lock(ctx context.Context, key string, ttl time.Duration) error {
	// Without a deadline of its own Obtain waits for one TTL.
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	return p.obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(retry)})
}

func (p *redislockParty) release(ctx context.Context, key string) (still, error) {
	err := p.held[key].Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return no, nil
	}
	return yes, err
}

func (p *redislockParty) extend(ctx context.Context, key string, ttl time.Duration) (still, error) {
	err := p.held[key].Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return no, nil
	}
	return yes, err
}

// rueidislockParty extends by itself, so it is not told to.
type rueidislockParty struct {
	addr    string
	lockers map[string]rueidislock.Locker // by prefix and TTL
	held    map[string]context.CancelFunc
}

func newRueidislockParty(rdb *redis.Client) party {
	return &rueidislockParty{rdb.Options().Addr, map[string]rueidislock.Locker{}, map[string]context.CancelFunc{}}
}

// locker makes the locker whose only key for name is key: PREFIX:0:NAME.
func (p *rueidislockParty) locker(key string, ttl time.Duration) (l rueidislock.Locker, name string, err error) {
	prefix, name, _ := strings.Cut(key, ":0:")
	id := prefix + strconv.FormatInt(int64(ttl), 10)
	if l := p.lockers[id]; l != nil {
		return l, name, nil
	}
	l, err = newLocker(p.addr, prefix, ttl, 1)
	p.lockers[id] = l
	return l, name, err
}

// newLocker has a KeyMajority of one key, or for a test of what is then not
// shared the default of two.
func newLocker(addr, prefix string, ttl time.Duration, majority int32) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyPrefix:    prefix, KeyValidity: ttl, KeyMajority: majority,
		TryNextAfter: 5 * time.Second, // 20 ms by default: a busy machine is slower
	})
}

func (p *rueidislockParty) try(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	l, name, err := p.locker(key, ttl)
	if err != nil {
		return false, err
	}
	_, cancel, err := l.TryWithContext(ctx, name)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return false, nil
	}
	p.held[key] = cancel
	return err == nil, err
}

func (p *rueidislockParty) lock(ctx context.Context, key string, ttl time.Duration) error {
	l, name, err := p.locker(key, ttl)
	if err != nil {
		return err
	}
	return untilHeard(ctx, func(ctx context.Context, got func() bool) error {
		_, cancel, err := l.WithContext(ctx, name)
		if err == nil && !got() {
			cancel()
			return context.Canceled
		}
		p.held[key] = cancel
		return err
	})
}

// untilHeard calls wait again when it has waited for a second: rueidislock
// v1.0.79 can wait for ever for a lock that is free. It forgets a waiter whose try
// fails when its own goroutine sees the failure before it is counted, and does so
// without zamok too. wait calls got when it has the lock, and has not when that
// says false.
func untilHeard(ctx context.Context, wait func(ctx context.Context, got func() bool) error) error {
	for {
		ctx, stop := context.WithCancel(ctx)
		limit := time.AfterFunc(time.Second, stop)
		// The lock's context comes from ctx, so that is left alone once it is there.
		if err := wait(ctx, limit.Stop); !errors.Is(err, context.Canceled) {
			return err
		}
	}
}

func (p *rueidislockParty) release(_ context.Context, key string) (still, error) {
	p.held[key]()
	return silent, nil
}

func (p *rueidislockParty) extend(context.Context, string, time.Duration) (still, error) {
	return silent, nil
}

// plainParty is the recipe of Redis's own documentation, without a library, as
// many programs have it. Its token tells the process and not the lock.
type plainParty struct {
	rdb   *redis.Client
	token string
}

func newPlainParty(rdb *redis.Client) party {
	return &plainParty{rdb, "f2c9/" + strconv.FormatInt(time.Now().UnixNano(), 36)}
}

var (
	plainRelease = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)
	plainExtend  = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`)
)

func (p *plainParty) try(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return p.rdb.SetNX(ctx, key, p.token, ttl).Result()
}

func (p *plainParty) lock(ctx context.Context, key string, ttl time.Duration) error {
	for {
		if ok, err := p.try(ctx, key, ttl); ok || err != nil {
			return err
		}
		time.Sleep(retry)
	}
}

func (p *plainParty) release(ctx context.Context, key string) (still, error) {
	ok, err := plainRelease.Run(ctx, p.rdb, []string{key}, p.token).Bool()
	return stillIf(ok), err
}

func (p *plainParty) extend(ctx context.Context, key string, ttl time.Duration) (still, error) {
	ok, err := plainExtend.Run(ctx, p.rdb, []string{key}, p.token, ttl.Milliseconds()).Bool()
	return stillIf(ok), err
}

// zamokParty is ours, as a process that can be killed.
type zamokParty struct {
	client *zamok.Client
	err    error
	held   map[string]*zamok.Lease
}

func newZamokParty(rdb *redis.Client) party {
	c, err := zamok.New(zamokgoredis.New(rdb), &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
	return &zamokParty{c, err, map[string]*zamok.Lease{}}
}

func (p *zamokParty) try(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	if p.err != nil {
		return false, p.err
	}
	lease, err := p.client.Mutex("job", &zamok.MutexConfig{Key: key, TTL: ttl}).TryLock(ctx)
	if errors.Is(err, zamok.ErrHeld) {
		return false, nil
	}
	p.held[key] = lease
	return err == nil, err
}

func (p *zamokParty) lock(ctx context.Context, key string, ttl time.Duration) (err error) {
	if p.err != nil {
		return p.err
	}
	p.held[key], err = p.client.Mutex("job", &zamok.MutexConfig{Key: key, TTL: ttl}).Lock(ctx)
	return err
}

func (p *zamokParty) release(ctx context.Context, key string) (still, error) {
	return zamokStill(p.held[key].Release(ctx))
}

func (p *zamokParty) extend(ctx context.Context, key string, ttl time.Duration) (still, error) {
	return zamokStill(p.held[key].Extend(ctx, ttl))
}

func zamokStill(err error) (still, error) {
	if errors.Is(err, zamok.ErrLost) {
		return no, nil
	}
	return yes, err
}
