package interop

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// TestKeyAndNoKeyAreTwoLocks: dropping Key in a rolling deployment is a time
// without a lock.
func TestKeyAndNoKeyAreTwoLocks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.zamok(t, zamok.Config{})
	withKey := tryLock(t, c.Mutex("billing", &zamok.MutexConfig{Key: "locks/billing"}))
	without := tryLock(t, c.Mutex("billing", nil))
	for _, l := range []*zamok.Lease{withKey, without} {
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("Check: %v, want both to hold", err)
		}
		release(t, l)
	}
}

// TestKeyIsExact: no prefix is put before it.
func TestKeyIsExact(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	lease := tryLock(t, s.zamok(t, zamok.Config{Prefix: "app:"}).Mutex("billing", &zamok.MutexConfig{Key: "locks/billing"}))
	if v := s.get(t, "locks/billing"); v == "" {
		t.Errorf("no key locks/billing: %v", s.MustDo("KEYS", "*"))
	}
	release(t, lease)
}

// TestKeysThatAreRefused: those whose braces would put the queue into another
// slot of a cluster.
func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, key := range []string{"a}b", "a{}b"} {
		_, err := s.shared(t, key, 0).TryLock(t.Context())
		var bad *zamok.ConfigError
		if !errors.As(err, &bad) || bad.Field != "MutexConfig.Key" {
			t.Errorf("key %s: %v", key, err)
		}
	}
}

// TestKeyNeedsItsOwnRight beside those that zamok's own keys need.
func TestKeyNeedsItsOwnRight(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rights := []string{"ACL", "SETUSER", "app", "on", ">secret", "resetchannels", "&zamok:*", "+@all", "resetkeys", "~lock:*", "~zamok:*"}
	s.MustDo(rights...)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := zamok.New(zamokgoredis.New(rdb), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	m := c.Mutex("billing", &zamok.MutexConfig{Key: "locks/billing"})
	_, err = m.TryLock(t.Context())
	var refused *zamok.ServerError
	if !errors.As(err, &refused) || !refused.Denied() {
		t.Errorf("without the right: %v", err)
	}
	s.MustDo(append(rights, "~locks/*")...)
	release(t, tryLock(t, m))
}
