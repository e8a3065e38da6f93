package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// A web process takes the lock, and a background process goes on with it: the
// lock is never free in between, and the web process holds nothing any more.
func ExampleMutex_Resume() {
	ctx := context.Background()
	server := memory.New()
	web, _ := zamok.New(server, nil)
	defer web.Close()
	background, _ := zamok.New(server, nil)
	defer background.Close()

	lease, _ := web.Mutex("upload:9", nil).Lock(ctx)
	first := lease.Fence()
	// Nobody renews it on its way, so it needs enough for the way.
	if err := lease.Extend(ctx, time.Minute); err != nil {
		fmt.Println(err)
	}
	token, _ := lease.Detach() // and the token goes with the job

	resumed, err := background.Mutex("upload:9", nil).Resume(ctx, token)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resumed.Release(ctx)
	fmt.Println("a later fence:", resumed.Fence() > first)
	fmt.Println("the web process has released it:", errors.Is(lease.Err(), zamok.ErrReleased))

	// The old token is worth nothing now.
	_, err = web.Mutex("upload:9", nil).Resume(ctx, token)
	fmt.Println("resumed twice:", !errors.Is(err, zamok.ErrLost))
	// Output:
	// a later fence: true
	// the web process has released it: true
	// resumed twice: false
}
