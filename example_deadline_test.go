package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Whoever waits in vain learns who holds the lock, since when, and what place in
// the queue it gave up.
func ExampleHeldError() {
	server := memory.New()
	holder, _ := zamok.New(server, nil)
	defer holder.Close()
	client, _ := zamok.New(server, nil)
	defer client.Close()
	lease, _ := holder.Mutex("deploy", nil).Lock(context.Background())
	defer lease.Release(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := client.Mutex("deploy", nil).Lock(ctx)

	fmt.Println("held by another:", errors.Is(err, zamok.ErrHeld))
	fmt.Println("the deadline came:", errors.Is(err, context.DeadlineExceeded))
	var held *zamok.HeldError
	if errors.As(err, &held) {
		fmt.Println("by that client:", held.Holder.Client == holder.ID())
		fmt.Println("its fence:", held.Fence == lease.Fence())
		fmt.Println("at most a TTL is left:", held.TTL <= 15*time.Second)
		fmt.Println("place in the queue:", held.Place)
	}
	// Output:
	// held by another: true
	// the deadline came: true
	// by that client: true
	// its fence: true
	// at most a TTL is left: true
	// place in the queue: 1
}
