package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// pay takes an amount from an account, if there is as much, and notes under which
// fence. It runs on the server, only while the lease holds, in one step with the
// question whether it does.
var pay = zamok.NewScript("pay", `
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
if balance < tonumber(ARGV[1]) then
  return 'too little'
end
redis.call('HSET', KEYS[2], 'fence', FENCE, 'amount', ARGV[1])
redis.call('DECRBY', KEYS[1], ARGV[1])
return 'paid'
`)

// payInMemory is the same in Go, because the in-memory server runs no Lua.
func payInMemory(tx *memory.Tx, keys, args []string, fence int64) (any, error) {
	text, _, err := tx.Get(keys[0])
	if err != nil {
		return nil, err
	}
	balance, _ := strconv.ParseInt(text, 10, 64)
	amount, _ := strconv.ParseInt(args[0], 10, 64)
	if balance < amount {
		return "too little", nil
	}
	for field, value := range map[string]string{"fence": fmt.Sprint(fence), "amount": args[0]} {
		if _, err := tx.HSet(keys[1], field, value); err != nil {
			return nil, err
		}
	}
	_, err = tx.Incr(keys[0], -amount)
	return "paid", err
}

// A payment is never made by a process that was paused for longer than its lease:
// the server itself asks whether the lease holds, and pays, in one step.
func ExampleLease_Run() {
	ctx := context.Background()
	server := memory.New()
	server.Define(pay.Name(), payInMemory)
	server.Set("balance:{7}", "100", 0)
	quiet := &zamok.Config{Logger: slog.New(slog.DiscardHandler)}
	a, _ := zamok.New(server, quiet)
	defer a.Close()
	b, _ := zamok.New(server, quiet)
	defer b.Close()

	// The braces put the account's keys in one slot of a cluster.
	keys := []string{"balance:{7}", "payment:{7}"}
	lease, _ := a.Mutex("account:{7}", nil).Lock(ctx)
	fmt.Println(lease.Run(ctx, pay, keys, 30))

	// The first process stands still, its lease ends on the server, and another
	// takes the lock. The first does not know.
	server.Del("lock:account:{7}")
	next, _ := b.Mutex("account:{7}", nil).Lock(ctx)
	fmt.Println("the first still believes:", lease.Err() == nil)

	_, err := lease.Run(ctx, pay, keys, 30)
	fmt.Println("its payment is refused:", errors.Is(err, zamok.ErrLost))
	fmt.Println(next.Run(ctx, pay, keys, 70))
	balance, _ := server.Get("balance:{7}")
	fmt.Println("balance:", balance)
	// Output:
	// paid <nil>
	// the first still believes: true
	// its payment is refused: true
	// paid <nil>
	// balance: 0
}
