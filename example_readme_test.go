package zamok_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// The README's program. A real one hands zamokgoredis.New or zamokrueidis.New to
// zamok.New instead of the in-memory server.
func Example() {
	ctx := context.Background()
	makeReport := func(ctx context.Context, fence int64) error {
		fmt.Println("reporting, fence is positive:", fence > 0)
		return ctx.Err()
	}
	d := memory.New()

	client, err := zamok.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Mutex("report", nil).Do(ctx, func(ctx context.Context) error {
		// ctx ends when the lease does: pass it on, and stop when it ends.
		return makeReport(ctx, zamok.LeaseFrom(ctx).Fence())
	})
	fmt.Println("error:", err)
	// Output:
	// reporting, fence is positive: true
	// error: <nil>
}
