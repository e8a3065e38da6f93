package fencing

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
)

var pay = zamok.NewScript("pay", `
local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
if balance < tonumber(ARGV[1]) then
  return 'too little'
end
redis.call('HSET', KEYS[2], 'fence', FENCE, 'amount', ARGV[1])
redis.call('DECRBY', KEYS[1], ARGV[1])
return 'paid'
`)

// fenced is for data on the server that is written also outside of the lock's
// life: it keeps the largest fence beside the value.
var fenced = zamok.NewScript("fenced write", `
local last = redis.call('HGET', KEYS[1], 'fence')
if last and tonumber(last) > tonumber(FENCE) then
  return redis.error_reply('STALE a later holder has written')
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', FENCE)
return 'written'
`)

func newClient(t *testing.T, server *drivertest.Server) *zamok.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client, err := zamok.New(zamokgoredis.New(rdb), &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = rdb.Close()
	})
	return client
}

func TestScriptRefusesTheOldHolder(t *testing.T) {
	ctx := context.Background()
	server := drivertest.StartServer(t)
	a, b := newClient(t, server), newClient(t, server)
	server.MustDo("SET", "balance:{7}", "100")
	keys := []string{"balance:{7}", "payment:{7}"}

	lease, err := a.Mutex("account:{7}", nil).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := lease.Run(ctx, pay, []string{"balance:{7}", "payment:{7}"}, 30)
	if reply != "paid" || err != nil {
		t.Fatalf("under the lock: %v, %v, want paid", reply, err)
	}
	server.MustDo("DEL", "lock:account:{7}")
	next, err := b.Mutex("account:{7}", nil).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := lease.Run(ctx, pay, keys, 30); !errors.Is(err, zamok.ErrLost) {
		t.Errorf("by the old holder: %v, %v, want ErrLost", reply, err)
	}
	if reply, err := next.Run(ctx, pay, keys, 70); reply != "paid" || err != nil {
		t.Errorf("by the next holder: %v, %v, want paid", reply, err)
	}
	if reply, err := next.Run(ctx, pay, keys, 1); reply != "too little" || err != nil {
		t.Errorf("of what is not there: %v, %v, want too little", reply, err)
	}
	if got := server.MustDo("GET", "balance:{7}"); got != "0" {
		t.Errorf("balance %v, want 0", got)
	}
}

// TestFencedWrite: after the server has lost the lock but not the data, as when a
// key is evicted, the fence beside the data still tells the two holders apart.
func TestFencedWrite(t *testing.T) {
	ctx := context.Background()
	server := drivertest.StartServer(t)
	client := newClient(t, server)
	m := client.Mutex("page:{1}", nil)
	lease, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"data:{1}"}
	if reply, err := lease.Run(ctx, fenced, keys, "mine"); reply != "written" || err != nil {
		t.Fatalf("got %v, %v, want written", reply, err)
	}
	server.MustDo("HSET", "data:{1}", "fence", "9007199254740000", "value", "of a later holder")
	_, err = lease.Run(ctx, fenced, keys, "late")
	var refused *zamok.ServerError
	if !errors.As(err, &refused) || refused.Code != "STALE" {
		t.Errorf("got %v, want the script's own error STALE", err)
	}
	if got := server.MustDo("HGET", "data:{1}", "value"); got != "of a later holder" {
		t.Errorf("value %v, want that of the later holder", got)
	}
}
