package zamok_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Three servers that share nothing decide together, so the lock goes on when one of
// them is down. A real program gives each of them a driver of its own, and the address
// as its name; `zamok quorum init` tells new servers that they are new, so that they
// need not sit out Config.Quarantine first, as these do here.
func ExampleNewQuorum() {
	ctx := context.Background()
	a, b, c := memory.New(), memory.New(), memory.New()

	client, err := zamok.NewQuorum([]zamok.Node{
		{Name: "a:6379", Driver: a}, {Name: "b:6379", Driver: b}, {Name: "c:6379", Driver: c},
	}, &zamok.Config{TTL: time.Second, Quarantine: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	report := client.Mutex("report", nil)
	work := func(context.Context) error { fmt.Println("reporting"); return nil }
	fmt.Println("error:", report.Do(ctx, work))
	b.Down(nil)
	fmt.Println("with one of three down:", report.Do(ctx, work))
	// Output:
	// reporting
	// error: <nil>
	// reporting
	// with one of three down: <nil>
}
