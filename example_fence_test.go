package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

var errStale = errors.New("stale: a later holder has written")

// fencedStore is a resource that the lock protects, and that protects itself: it
// keeps the largest fence that it has seen, and refuses what comes with a smaller
// one. The comparison and the write are one step.
type fencedStore struct {
	mu    sync.Mutex
	fence int64
	value string
}

func (s *fencedStore) write(fence int64, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.fence {
		return errStale
	}
	s.fence, s.value = fence, value
	return nil
}

// The late write of a holder that was paused is refused by the resource.
func ExampleLease_Fence() {
	ctx := context.Background()
	server := memory.New()
	quiet := &zamok.Config{Logger: slog.New(slog.DiscardHandler)}
	a, _ := zamok.New(server, quiet)
	defer a.Close()
	b, _ := zamok.New(server, quiet)
	defer b.Close()
	store := &fencedStore{}

	first, _ := a.Mutex("page", nil).Lock(ctx)
	server.Wipe() // the server loses its data, so a second holder comes in
	second, _ := b.Mutex("page", nil).Lock(ctx)

	fmt.Println(store.write(second.Fence(), "second"))
	fmt.Println(store.write(first.Fence(), "first"))
	fmt.Println(store.value)
	// Output:
	// <nil>
	// stale: a later holder has written
	// second
}
