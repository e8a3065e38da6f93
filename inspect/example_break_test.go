package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// An operator asks whoever imports to stop, and the import is told why.
func ExampleInspector_Break() {
	ctx := context.Background()
	server := memory.New()
	client, err := zamok.New(server, &zamok.Config{TTL: 3 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stopped := make(chan error)
	started := make(chan struct{})
	go func() {
		stopped <- client.Mutex("import", nil).Do(ctx, func(ctx context.Context) error {
			close(started)
			<-ctx.Done() // the work, which stops when the lease ends
			return context.Cause(ctx)
		})
	}()
	<-started

	in, err := inspect.New(server, "")
	if err != nil {
		log.Fatal(err)
	}
	l, err := in.Show(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	b, err := in.Break(ctx, l, &inspect.BreakConfig{By: "alice@desk", Why: "wrong file"})
	if errors.Is(err, inspect.ErrChanged) {
		fmt.Println("it has ended by itself")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("asked:", b.Asked, "and it is free in 3 s at most:", b.Left <= 3*time.Second)

	var lost *zamok.LostError
	if errors.As(<-stopped, &lost) {
		fmt.Printf("stopped by %s: %s\n", lost.Operator, lost.Why)
	}
	// Output:
	// asked: true and it is free in 3 s at most: true
	// stopped by alice@desk: wrong file
}
