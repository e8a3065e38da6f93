package zamok_test

import (
	"context"
	"fmt"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Waiters of several processes are served in the order in which they came.
func ExampleMutex_Lock() {
	ctx := context.Background()
	server := memory.New()
	holder, _ := zamok.New(server, nil)
	defer holder.Close()
	lease, _ := holder.Mutex("printer", nil).Lock(ctx)

	served := make(chan string)
	for _, name := range []string{"first", "second", "third"} {
		stands := make(chan struct{}, 1)
		client, _ := zamok.New(server, &zamok.Config{Trace: &zamok.Trace{Waiting: func(zamok.WaitingInfo) {
			select {
			case stands <- struct{}{}:
			default:
			}
		}}})
		defer client.Close()
		go func() {
			lease, err := client.Mutex("printer", nil).Lock(ctx)
			if err != nil {
				served <- err.Error()
				return
			}
			served <- name
			_ = lease.Release(ctx)
		}()
		<-stands // it is in the queue before the next one comes
	}

	_ = lease.Release(ctx)
	for range 3 {
		fmt.Println(<-served)
	}
	// Output:
	// first
	// second
	// third
}
