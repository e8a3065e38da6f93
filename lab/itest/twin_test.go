package itest

import (
	"errors"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamoktest"
)

// What docs/testing.md tells users to do with a guarded script and its Go twin:
// one test that knows a client and nothing of the server behind it, run on both.

var withdraw = zamok.NewScript("withdraw", `
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
if balance < tonumber(ARGV[1]) then
  return redis.error_reply('SHORT of money')
end
return redis.call('DECRBY', KEYS[1], ARGV[1])
`)

func withdrawTwin(tx *zamoktest.Tx, keys, args []string, _ int64) (any, error) {
	text, _, err := tx.Get(keys[0])
	if err != nil {
		return nil, err
	}
	balance, _ := strconv.ParseInt(text, 10, 64)
	amount, _ := strconv.ParseInt(args[0], 10, 64)
	if balance < amount {
		return nil, &driver.ServerError{Text: "SHORT of money"}
	}
	return tx.Incr(keys[0], -amount)
}

func testWithdraw(t *testing.T, client *zamok.Client) {
	lease, err := client.Mutex("account:{7}", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		amount int
		left   any
		code   string // of the error
	}{{-100, int64(100), ""}, {30, int64(70), ""}, {71, nil, "SHORT"}, {70, int64(0), ""}} {
		left, err := lease.Run(t.Context(), withdraw, []string{"balance:{7}"}, step.amount)
		var refused *zamok.ServerError
		if left != step.left || errors.As(err, &refused) != (step.code != "") || refused != nil && refused.Code != step.code {
			t.Errorf("of %d: %v left, %v; want %v, code %q", step.amount, left, err, step.left, step.code)
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWithdrawInMemory(t *testing.T) {
	server := zamoktest.New(t, nil)
	server.Define(withdraw, withdrawTwin)
	testWithdraw(t, server.Client())
}

func TestWithdrawOnServer(t *testing.T) {
	server := drivertest.StartServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := zamok.New(zamokgoredis.New(rdb), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testWithdraw(t, client)
}
