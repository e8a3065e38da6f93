package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
)

// swap replaces a text, if it is the expected one, and returns what it was
// before. All decisions are made in Go, because under the lease nobody else
// writes the record: what was read stays true until the lease ends, and then the
// guard refuses the write. So one script is enough for everything. It can be sent
// again when its reply was lost: what it finds then is its own text.
//
// The name is known to package oncetest.
var swap = zamok.NewScript("zamok.once", `
local was = redis.call('GET', KEYS[1]) or ''
if was ~= ARGV[1] then
  return was
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return was
`)

// noText is what no record is, so that expecting it is reading.
const noText = "\x00"

const (
	// patience is how long a call tries to reach the record while the server gives
	// no usable answer.
	patience = 5 * time.Second

	// oneTry bounds a request, so that patience has room for some.
	oneTry = 1500 * time.Millisecond
)

// slip is a record on the server, under a lease of its lock.
type slip struct {
	lease *zamok.Lease
	key   string
}

// swap runs the script until its outcome is known, as far as the lease, ctx and
// patience allow. Its error leaves open whether the text was replaced only if it
// wraps zamok.ErrUnknown.
func (s slip) swap(ctx context.Context, expected, next string, ttl time.Duration) (was string, err error) {
	began := time.Now()
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
		was, err := s.try(ctx, expected, next, ttl)
		switch {
		case err == nil:
			return was, nil
		case !passes(err) || time.Since(began)+pause > patience:
			return "", err
		case !s.sleep(ctx, pause):
			return "", errors.Join(err, s.lease.Err(), context.Cause(ctx))
		}
	}
}

func (s slip) try(ctx context.Context, expected, next string, ttl time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	reply, err := s.lease.Run(ctx, swap, []string{s.key}, expected, next, ttl.Milliseconds())
	if err != nil {
		return "", err
	}
	was, ok := reply.(string)
	if !ok {
		return "", fmt.Errorf("zamok: script %q: the server sent %.60v, want a string", swap.Name(), reply)
	}
	return was, nil
}

// passes says whether trying again may help.
func passes(err error) bool {
	return !errors.Is(err, zamok.ErrLost) && (errors.Is(err, zamok.ErrUnknown) || errors.Is(err, zamok.ErrUnavailable))
}

// sleep returns false when there is no use in trying on.
func (s slip) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil && s.lease.Err() == nil
	case <-ctx.Done():
	case <-s.lease.Context().Done():
	}
	return false
}

// read returns the text; empty when there is none.
func (s slip) read(ctx context.Context) (string, error) {
	return s.swap(ctx, noText, noText, 0)
}
