package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// While a program moves from another lock library to zamok, old and new versions
// of it run side by side. They exclude each other when they use the same key: all
// libraries that do SET key token NX PX ms and compare the token before they
// delete.
func ExampleMutexConfig_key() {
	ctx := context.Background()
	server := memory.New()
	client, _ := zamok.New(server, nil)
	defer client.Close()
	m := client.Mutex("billing", &zamok.MutexConfig{Key: "old-lib:billing"})

	server.Set("old-lib:billing", "b3c1a9", 8*time.Second) // the old library holds it
	_, err := m.TryLock(ctx)
	var held *zamok.HeldError
	if errors.As(err, &held) {
		fmt.Println("by a foreign program:", held.Holder.Foreign, held.Holder.Token)
	}

	server.Del("old-lib:billing") // and releases it
	lease, err := m.TryLock(ctx)
	fmt.Println("error:", err)
	_, exists := server.Get("old-lib:billing")
	fmt.Println("its SET … NX would fail:", exists)
	_ = lease.Release(ctx)
	// Output:
	// by a foreign program: true b3c1a9
	// error: <nil>
	// its SET … NX would fail: true
}
