package zamok_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// A worker takes, of many tasks, those that no other works on at this moment, and
// never waits.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	server := memory.New()
	worker, _ := zamok.New(server, nil)
	defer worker.Close()
	other, _ := zamok.New(server, nil)
	defer other.Close()

	busy, _ := other.Mutex("task:2", nil).TryLock(ctx)
	defer busy.Release(ctx)

	for _, task := range []string{"task:1", "task:2", "task:3"} {
		lease, err := worker.Mutex(task, nil).TryLock(ctx)
		if errors.Is(err, zamok.ErrHeld) {
			fmt.Println(task, "is in other hands")
			continue
		}
		if err != nil {
			fmt.Println(err) // the server did not answer: that is not "held"
			return
		}
		fmt.Println(task, "done")
		if err := lease.Release(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// task:1 done
	// task:2 is in other hands
	// task:3 done
}
