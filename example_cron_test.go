package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// nightly is what cron starts on every host at 03:00. The host whose clock is
// behind starts it when the first host is done already, so the name stays taken
// for longer than the clocks can differ.
func nightly(host string, client *zamok.Client) {
	guard := client.Mutex("nightly-cleanup", &zamok.MutexConfig{MinHold: 10 * time.Minute})
	err := guard.TryDo(context.Background(), func(context.Context) error {
		fmt.Println(host, "cleans up")
		return nil
	})
	var held *zamok.HeldError
	if errors.As(err, &held) {
		fmt.Println(host, "has nothing to do; done already:", held.Holder.Resting)
	}
}

// A cron job that several hosts start runs on one of them.
func ExampleMutexConfig_minHold() {
	server := memory.New()
	a, _ := zamok.New(server, nil)
	defer a.Close()
	b, _ := zamok.New(server, nil)
	defer b.Close()

	nightly("host a", a)
	nightly("host b", b)
	// Output:
	// host a cleans up
	// host b has nothing to do; done already: true
}
