package parts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// peer is one of two who pass a lock on to each other.
type peer interface {
	// enqueue returns when the peer stands in the queue, or has the lock; the
	// moment at which it has it comes on the channel.
	enqueue(ctx context.Context) (<-chan time.Time, error)
	release(ctx context.Context) error
}

// BenchmarkHandover is the time from the call of a release to the moment at
// which the one who waits knows that it holds.
func BenchmarkHandover(b *testing.B) {
	for _, lib := range libraries {
		b.Run(lib.name, func(b *testing.B) {
			addr := drivertest.StartServer(b).Addr()
			variants := []*variant{{name: "bare"}, {name: "zamok"}}
			var peers [2][2]peer
			for i := range 2 {
				d, _ := lib.open(b, addr)
				peers[0][i] = newBare(b, d, i)
				d, _ = lib.open(b, addr)
				peers[1][i] = newFull(b, d)
			}
			ctx := context.Background()
			for v := range variants {
				if _, err := peers[v][0].enqueue(ctx); err != nil {
					b.Fatal(err)
				}
			}
			turn := 0
			for b.Loop() {
				for v, of := range variants {
					took, err := pass(ctx, peers[v][turn%2], peers[v][1-turn%2])
					if err != nil {
						b.Fatalf("%s: %v", of.name, err)
					}
					of.took = append(of.took, took)
				}
				turn++
			}
			report(b, "hand-over", variants)
		})
	}
}

func pass(ctx context.Context, from, to peer) (time.Duration, error) {
	held, err := to.enqueue(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := from.release(ctx); err != nil {
		return 0, err
	}
	select {
	case at := <-held:
		return at.Sub(start), nil
	case <-time.After(10 * time.Second):
		return 0, fmt.Errorf("not handed over")
	}
}

// bare is the same hand-over with the scripts and a subscription, and nothing
// else: no timer, no deadline, no second look.
type bare struct {
	d       driver.Driver
	set     *keys.Set
	inbox   string
	grants  chan time.Time
	token   string
	counter int
}

func newBare(b *testing.B, d driver.Driver, i int) *bare {
	b.Helper()
	set, err := keys.ForName("", "bare")
	if err != nil {
		b.Fatal(err)
	}
	p := &bare{d: d, set: set, inbox: fmt.Sprint("inbox", i), grants: make(chan time.Time, 1)}
	sub, err := d.Subscribe(context.Background(), time.Second, p.inbox, func(e driver.Event) {
		if e.Kind == driver.Message && strings.HasPrefix(e.Payload, "grant ") {
			p.grants <- time.Now()
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sub.Close() })
	return p
}

func (p *bare) enqueue(ctx context.Context) (<-chan time.Time, error) {
	p.counter++
	p.token = fmt.Sprint("z1/host/1/", p.inbox, "/", p.counter)
	reply, err := p.d.Eval(ctx, driver.Call{Script: lua.Acquire, Keys: p.set.Main, Args: []string{p.token, "15000", p.inbox, "0", "w"}, Limit: time.Second})
	if err != nil {
		return nil, err
	}
	if status := reply.([]any)[0]; status != "waits" && status != "granted" {
		return nil, fmt.Errorf("%v", reply)
	}
	return p.grants, nil
}

func (p *bare) release(ctx context.Context) error {
	_, err := p.d.Eval(ctx, driver.Call{Script: lua.Release, Keys: p.set.Main, Args: []string{p.token, "", "0"}, Limit: time.Second})
	return err
}

// full is zamok.
type full struct {
	m     *zamok.Mutex
	waits chan struct{}
	lease chan *zamok.Lease
}

func newFull(b *testing.B, d driver.Driver) *full {
	b.Helper()
	p := &full{waits: make(chan struct{}, 1), lease: make(chan *zamok.Lease, 1)}
	p.m = newClient(b, d, &zamok.Trace{Waiting: func(zamok.WaitingInfo) {
		select {
		case p.waits <- struct{}{}:
		default:
		}
	}}).Mutex("zamok", nil)
	return p
}

func (p *full) enqueue(ctx context.Context) (<-chan time.Time, error) {
	done := make(chan error, 1)
	held := make(chan time.Time, 1)
	select {
	case <-p.waits: // a second look of the time before
	default:
	}
	go func() {
		l, err := p.m.Lock(ctx)
		held <- time.Now()
		p.lease <- l
		done <- err
	}()
	select {
	case <-p.waits:
		return held, nil
	case err := <-done:
		return held, err
	}
}

func (p *full) release(ctx context.Context) error { return (<-p.lease).Release(ctx) }
