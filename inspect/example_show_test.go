package inspect_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// Who holds the lock of the nightly report?
func ExampleInspector_Show() {
	ctx := context.Background()
	server := memory.New() // or a driver for a Redis client: zamokgoredis, zamokrueidis
	client, err := zamok.New(server, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Mutex("nightly", nil).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	in, err := inspect.New(server, "")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"nightly", "weekly"} {
		l, err := in.Show(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Name, "held:", l.Held, "by us:", l.First().Holder.Client == client.ID(), "waiting:", l.Waiting)
	}
	// Output:
	// nightly held: true by us: true waiting: 0
	// weekly held: false by us: false waiting: 0
}
