package zamok_test

import (
	"context"
	"fmt"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// invoices is far from the code that takes the lock.
type invoices struct{ lastFence int64 }

// save needs the lock. A context without a lease is a mistake of the caller.
func (s *invoices) save(ctx context.Context) error {
	lease := zamok.LeaseFrom(ctx)
	if lease == nil {
		return fmt.Errorf("save needs the lock of the invoices")
	}
	if lease.Fence() < s.lastFence {
		return fmt.Errorf("a later holder has been here")
	}
	s.lastFence = lease.Fence()
	return nil
}

// A helper deep in the call gets the lease from its context. It must not lock
// again: locks are not re-entrant, and doing so is an error and not a deadlock.
func ExampleLeaseFrom() {
	ctx := context.Background()
	client, _ := zamok.New(memory.New(), nil)
	defer client.Close()
	m := client.Mutex("invoices", nil)
	store := &invoices{}

	fmt.Println("without the lock:", store.save(ctx))
	err := m.Do(ctx, func(ctx context.Context) error {
		_, again := m.Lock(ctx)
		fmt.Println("locking again fails:", again != nil)
		return store.save(ctx)
	})
	fmt.Println("with it:", err)
	// Output:
	// without the lock: save needs the lock of the invoices
	// locking again fails: true
	// with it: <nil>
}
