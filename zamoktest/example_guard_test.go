package zamoktest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamoktest"
)

// withdraw takes an amount from an account, if there is as much, and notes under
// which fence.
var withdraw = zamok.NewScript("withdraw", `
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
if balance < tonumber(ARGV[1]) then
  return redis.error_reply('SHORT of money')
end
redis.call('HSET', KEYS[2], 'fence', FENCE, 'amount', ARGV[1])
return redis.call('DECRBY', KEYS[1], ARGV[1])
`)

// withdrawTwin is the same in Go.
func withdrawTwin(tx *zamoktest.Tx, keys, args []string, fence int64) (any, error) {
	text, _, err := tx.Get(keys[0])
	if err != nil {
		return nil, err
	}
	balance, _ := strconv.ParseInt(text, 10, 64)
	amount, _ := strconv.ParseInt(args[0], 10, 64)
	if balance < amount {
		return nil, &driver.ServerError{Text: "SHORT of money"}
	}
	if _, err := tx.HSet(keys[1], "fence", strconv.FormatInt(fence, 10)); err != nil {
		return nil, err
	}
	if _, err := tx.HSet(keys[1], "amount", args[0]); err != nil {
		return nil, err
	}
	return tx.Incr(keys[0], -amount)
}

// bank is the code under test. Its errors say whether the money is gone.
type bank struct{ locks *zamok.Client }

var (
	errNotPaid = errors.New("not paid")
	errUnclear = errors.New("nobody knows whether it was paid")
)

// pay withdraws under the lock of the account. between runs when the lock is
// held, for the test to break things.
func (b *bank) pay(ctx context.Context, amount int, between func()) error {
	return b.locks.Mutex("account:{7}", nil).Do(ctx, func(ctx context.Context) error {
		between()
		_, err := zamok.LeaseFrom(ctx).Run(ctx, withdraw, []string{"balance:{7}", "last:{7}"}, amount)
		switch {
		case errors.Is(err, zamok.ErrUnknown):
			return errUnclear
		case err != nil:
			return errors.Join(errNotPaid, err)
		}
		return nil
	})
}

func TestPay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		amount  int
		fault   func(server *zamoktest.Server)
		want    error
		balance string // afterwards, of 100
	}{
		{"paid", 30, func(*zamoktest.Server) {}, nil, "70"},
		{"too much", 101, func(*zamoktest.Server) {}, errNotPaid, "100"},
		{"the lock is lost", 30, func(s *zamoktest.Server) { s.Lose("account:{7}") }, errNotPaid, "100"},
		{"the reply is lost", 30, func(s *zamoktest.Server) { s.LoseReply(withdraw) }, errUnclear, "70"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zamoktest.New(t, nil)
				server.Define(withdraw, withdrawTwin)
				server.Set("balance:{7}", "100", 0)
				b := &bank{locks: server.Client()}
				err := b.pay(t.Context(), tt.amount, func() { tt.fault(server) })
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if balance, _ := server.Get("balance:{7}"); balance != tt.balance {
					t.Errorf("balance %s, want %s", balance, tt.balance)
				}
			})
		})
	}
}
