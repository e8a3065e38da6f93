package zamok_test

import (
	"context"
	"fmt"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Many processes serve from a catalogue, and now and then one of them rebuilds it:
// alone, and without letting another writer in before it has looked at the result.
func ExampleClient_RWMutex() {
	client, err := zamok.New(memory.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	catalogue := client.RWMutex("catalogue", nil)
	ctx := context.Background()

	err = catalogue.RDo(ctx, func(context.Context) error { // beside all others who read
		fmt.Println("serve")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}

	err = catalogue.Do(ctx, func(ctx context.Context) error { // alone
		fmt.Println("rebuild")
		if err := zamok.LeaseFrom(ctx).Downgrade(ctx); err != nil { // from here on readers are let in, and no writer
			return err
		}
		fmt.Println("check what was built")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// serve
	// rebuild
	// check what was built
}
