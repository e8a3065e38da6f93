package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// party is a library in Go as the other side uses it. A process talks to one
// party from one goroutine.
type party interface {
	// try takes the lock or says false, at once.
	try(ctx context.Context, key string, ttl time.Duration) (bool, error)
	// lock waits as the library does.
	lock(ctx context.Context, key string, ttl time.Duration) error
	release(ctx context.Context, key string) (still, error)
	extend(ctx context.Context, key string, ttl time.Duration) (still, error)
}

// still is whether the lock was still the party's own.
type still string

const (
	yes    still = "yes"
	no     still = "no"
	silent still = "silent" // the library does not tell
)

func stillIf(mine bool) still {
	if mine {
		return yes
	}
	return no
}

// parties are those that this binary can play, by role.
var parties = map[string]func(rdb *redis.Client) party{
	"redsync":     newRedsyncParty,
	"redislock":   newRedislockParty,
	"rueidislock": newRueidislockParty,
	"go-redis":    newPlainParty,
	"zamok":       newZamokParty,
}

// speak is the main function of a process that a test started.
func speak(role, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	create, ok := parties[role]
	if !ok {
		return errors.New("no such role")
	}
	s := &speaker{rdb: rdb, party: create(rdb)}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		answer, err := s.obey(context.Background(), strings.Fields(orders.Text()))
		if err != nil {
			return fmt.Errorf("%s: %w", orders.Text(), err)
		}
		fmt.Println(answer)
	}
	return orders.Err()
}

type speaker struct {
	rdb   *redis.Client
	party party
}

func (s *speaker) obey(ctx context.Context, order []string) (still, error) {
	if len(order) < 2 {
		return no, errors.New("not an order")
	}
	key := order[1]
	var ttl time.Duration
	if len(order) > 2 && order[0] != "count" {
		ms, err := strconv.Atoi(order[2])
		if err != nil {
			return no, err
		}
		ttl = time.Duration(ms) * time.Millisecond
	}
	switch order[0] {
	case "try":
		ok, err := s.party.try(ctx, key, ttl)
		return stillIf(ok), err
	case "lock":
		return yes, s.party.lock(ctx, key, ttl)
	case "release":
		return s.party.release(ctx, key)
	case "extend":
		return s.party.extend(ctx, key, ttl)
	case "count":
		return yes, s.count(ctx, key, order[2])
	}
	return no, errors.New("no such order")
}

func (s *speaker) count(ctx context.Context, key, id string) error {
	for i := 0; !stopped(ctx, s.rdb); i++ {
		if err := s.party.lock(ctx, key, 10*time.Second); err != nil {
			return err
		}
		if err := bump(ctx, s.rdb, id); err != nil {
			return err
		}
		if _, err := s.party.release(ctx, key); err != nil {
			return err
		}
		rest(i)
	}
	return nil
}

// stopped says that it has been counted enough.
func stopped(ctx context.Context, rdb *redis.Client) bool {
	n, err := rdb.Exists(ctx, "stop").Result()
	return n == 1 || err != nil
}

// rest is what everybody does between two counts: now and then for long, so that
// neither kind has the lock for itself until it is done. Each could: zamok's
// passes it from one waiter to the next without ever freeing it, and the others
// ask more often than zamok does when it is free.
func rest(i int) {
	time.Sleep(rand.N(10 * time.Millisecond))
	if i%3 == 2 {
		time.Sleep(100*time.Millisecond + rand.N(300*time.Millisecond))
	}
}

// bump counts in the way that needs a lock: whoever comes between its read and
// its write is lost.
func bump(ctx context.Context, rdb *redis.Client, id string) error {
	v, err := rdb.Get(ctx, "counter").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	time.Sleep(2 * time.Millisecond) // thinks
	if err := rdb.Set(ctx, "counter", v+1, 0).Err(); err != nil {
		return err
	}
	return rdb.RPush(ctx, "turns", id).Err()
}
