package broken

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/traffic"
)

// poll is how often who waits asks.
const poll = 5 * time.Millisecond

// Engine is a lock with a flaw. It implements traffic.Engine and traffic.Doer.
type Engine struct {
	flaw   Flaw
	ttl    time.Duration
	id     string
	skew   time.Duration // of its client's clock
	rdb    *redis.Client
	behind sync.WaitGroup // what goes on behind callers' backs

	mu   sync.Mutex
	next int
}

// New makes the client of that number of a process, for the server at addr.
func New(flaw Flaw, addr, proc string, number int, ttl time.Duration) *Engine {
	opt := &redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: ttl}
	e := &Engine{flaw: flaw, ttl: ttl, id: fmt.Sprint(proc, "-", number)}
	if flaw == ClientClocks {
		e.skew = time.Duration(number) * 3 * ttl
	}
	e.rdb = redis.NewClient(opt)
	return e
}

// Close waits for what goes on behind.
func (e *Engine) Close() error {
	e.behind.Wait()
	return e.rdb.Close()
}

// token is new for each call of Take.
func (e *Engine) token() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	return fmt.Sprint(e.id, "-", e.next)
}

// Take implements traffic.Engine.
func (e *Engine) Take(ctx context.Context, w traffic.Want) (traffic.Lease, error) {
	t := &try{Engine: e, want: w, token: e.token()}
	var heard <-chan *redis.Message
	if e.flaw == HearsOnly && w.Wait {
		s := e.rdb.Subscribe(ctx, channel(w.Name))
		defer s.Close()
		if _, err := s.Receive(ctx); err != nil {
			return nil, err
		}
		heard = s.Channel()
	}
	if e.flaw == SaysHeld && !w.Wait {
		return nil, zamok.ErrHeld
	}
	for {
		l, err := t.ask(ctx)
		if l != nil {
			return l, nil
		}
		half := e.flaw == EndsLater && !errors.Is(err, zamok.ErrHeld) // it has the lock, without a TTL, and does not know
		if !w.Wait || ctx.Err() != nil || half {
			t.leave()
			return nil, errors.Join(err, ctx.Err())
		}
		if errors.Is(err, zamok.ErrHeld) && w.Queued != nil && w.Kind == history.Mutex { // the others have no queue
			w.Queued()
		}
		var again <-chan time.Time
		if heard == nil {
			again = time.After(poll)
		}
		select {
		case <-heard:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// Once implements traffic.Doer. Without its flaw it is for GiveUp alone: who finds that
// another has begun waits for the outcome, for as long as ctx lasts.
func (e *Engine) Once(ctx context.Context, _ history.Kind, key string, f func(ctx context.Context, until time.Time) (int64, error)) (int64, error) {
	const keep = time.Minute
	outcome, claim := "once:"+key, "claim:"+key
	for ctx.Err() == nil {
		value, err := e.rdb.Get(ctx, outcome).Int64()
		if err == nil || !errors.Is(err, redis.Nil) {
			return value, err
		}
		mine := true
		if e.flaw != RunsAgain {
			if mine, err = e.rdb.SetNX(ctx, claim, 1, keep).Result(); err != nil {
				return 0, err
			}
		}
		if mine {
			value, err = f(ctx, time.Now().Add(keep))
			if err != nil {
				return 0, err
			}
			return value, e.rdb.Set(ctx, outcome, value, keep).Err()
		}
		time.Sleep(poll)
	}
	return 0, ctx.Err()
}

func channel(name string) string { return "freed:" + name }
