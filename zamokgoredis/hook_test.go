package zamokgoredis

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// hook notes what passes, and the value of a context that reaches it.
type hook struct {
	mu     sync.Mutex
	seen   []string
	values []any
	dials  int
}

type ctxKey struct{}

func (h *hook) note(ctx context.Context, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, name)
	h.values = append(h.values, ctx.Value(ctxKey{}))
}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		h.mu.Lock()
		h.dials++
		h.mu.Unlock()
		return next(ctx, network, addr)
	}
}

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.note(ctx, cmd.Name())
		return next(ctx, cmd)
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		names := []string{}
		for _, cmd := range cmds {
			names = append(names, cmd.Name())
		}
		h.note(ctx, strings.Join(names, "+"))
		return next(ctx, cmds)
	}
}

// Tracing, metrics and limits that a user has put on the client see our
// commands, with the user's context.
func TestHooksSeeCommands(t *testing.T) {
	c := newClient(t, drivertest.StartServer(t).URL())
	h := &hook{}
	c.AddHook(h)
	d := New(c)
	ctx := context.WithValue(t.Context(), ctxKey{}, "mine")
	call := driver.Call{Script: driver.NewScript("one", "return 1"), Limit: 10 * time.Second}
	if _, err := d.Eval(ctx, call); err != nil {
		t.Fatal(err)
	}
	d.EvalAll(ctx, []driver.Call{call, call})
	if _, err := d.Do(ctx, call.Limit, "PING"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.EvalWait(ctx, call, 0, time.Second); err != nil {
		t.Fatal(err)
	}
	sub, err := d.Subscribe(ctx, call.Limit, "ch", func(driver.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	var ours []string
	for i, name := range h.seen {
		if h.values[i] == "mine" && name != "hello" && !strings.HasPrefix(name, "client") {
			ours = append(ours, name)
		}
	}
	if want := []string{"script", "evalsha", "evalsha+evalsha", "ping", "evalsha+wait"}; !slices.Equal(ours, want) {
		t.Errorf("the hook saw %q, want %q", ours, want)
	}
	if h.dials < 2 {
		t.Errorf("the hook saw %d connections, want those of a command and of a subscription", h.dials)
	}
}
