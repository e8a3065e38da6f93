package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// campaign stands for election until ctx ends: it waits for its turn, leads until
// it loses the lease or lead returns, and stands again. A server that does not
// answer costs a pause and not the loop.
func campaign(ctx context.Context, m *zamok.Mutex, lead func(ctx context.Context) error) error {
	for {
		err := m.Do(ctx, lead)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, zamok.ErrUnavailable):
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		case err != nil && !errors.Is(err, zamok.ErrLost):
			return err // a mistake, a refusal, or what lead returned
		}
	}
}

// Of several processes one leads; when it goes, the next takes over.
func Example_leader() {
	ctx, stop := context.WithCancel(context.Background())
	server := memory.New()
	events := make(chan string)
	start := func(name string) (resign context.CancelFunc) {
		client, _ := zamok.New(server, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
		mine, cancel := context.WithCancel(ctx)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer client.Close()
			_ = campaign(mine, client.Mutex("leader", nil), func(ctx context.Context) error {
				events <- name + " leads"
				<-ctx.Done()
				events <- name + " stops"
				return nil
			})
		}()
		return func() {
			cancel()
			fmt.Println(<-events)
			<-gone
		}
	}

	resignA := start("a")
	fmt.Println(<-events)
	resignB := start("b")
	resignA()
	fmt.Println(<-events)
	resignB()
	stop()
	// Output:
	// a leads
	// a stops
	// b leads
	// b stops
}
