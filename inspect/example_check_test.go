package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// Monitoring asks whether anything is held for too long.
func ExampleInspector_Check() {
	ctx := context.Background()
	server := memory.New()
	client, err := zamok.New(server, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Mutex("nightly", nil).Lock(ctx); err != nil {
		log.Fatal(err)
	}

	in, err := inspect.New(server, "")
	if err != nil {
		log.Fatal(err)
	}
	cfg := &inspect.CheckConfig{Held: 20 * time.Millisecond} // an hour, in earnest
	report, err := in.Check(ctx, cfg)
	for err == nil && len(report.Problems) == 0 {
		time.Sleep(10 * time.Millisecond)
		report, err = in.Check(ctx, cfg)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", report.Held, "critical:", report.Critical())
	for _, p := range report.Problems {
		fmt.Println(p.Lock.Name, p.Kind)
	}
	// Output:
	// held: 1 critical: false
	// nightly held
}
