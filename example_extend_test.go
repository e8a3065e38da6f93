package zamok_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Renewal keeps a lease alive as long as the process lives and reaches the
// server. Before a step that must not be cut short even when it does not, such
// as the restart of a network device, the lease is extended over the whole of it.
func ExampleLease_Extend() {
	ctx := context.Background()
	server := memory.New()
	client, _ := zamok.New(server, nil)
	defer client.Close()

	lease, _ := client.Mutex("router", nil).Lock(ctx)
	defer lease.Release(ctx)
	fmt.Println("a whole minute left:", time.Until(lease.Deadline()) > time.Minute)

	if err := lease.Extend(ctx, 2*time.Minute); err != nil {
		fmt.Println(err)
	}
	fmt.Println("a whole minute left:", time.Until(lease.Deadline()) > time.Minute)

	err := lease.Extend(ctx, time.Second) // is there already: a lease is never shortened
	left, _ := server.TTL("lock:router")
	fmt.Println("shortened:", left < time.Minute, err)
	// Output:
	// a whole minute left: false
	// a whole minute left: true
	// shortened: false <nil>
}
