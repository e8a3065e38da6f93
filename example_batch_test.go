package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// importRows works through a long list. It stops when the lease is lost, keeps
// what it has done to itself until the end, and asks the server once more before
// it makes it known.
func importRows(ctx context.Context, rows []string, work func(row string)) error {
	var staged []string
	for _, row := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a *zamok.LostError when the lease was lost
		}
		work(row)
		staged = append(staged, row)
	}
	if err := zamok.LeaseFrom(ctx).Check(ctx); err != nil {
		return err // nothing was committed
	}
	fmt.Println("committed", len(staged), "rows")
	return nil
}

// A long batch learns of the loss of its lease and commits nothing after it.
func ExampleLease_Check() {
	ctx := context.Background()
	server := memory.New()
	client, _ := zamok.New(server, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
	defer client.Close()
	m := client.Mutex("import", nil)
	rows := []string{"a", "b", "c"}

	err := m.Do(ctx, func(ctx context.Context) error {
		return importRows(ctx, rows, func(string) {})
	})
	fmt.Println("first run:", err)

	err = m.Do(ctx, func(ctx context.Context) error {
		return importRows(ctx, rows, func(row string) {
			if row == "b" {
				server.Del("lock:import") // an operator deletes the key
			}
		})
	})
	var lost *zamok.LostError
	fmt.Println("second run lost it:", errors.As(err, &lost))
	fmt.Println("reason:", lost.Reason)
	// Output:
	// committed 3 rows
	// first run: <nil>
	// second run lost it: true
	// reason: key deleted
}
