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

// What is being deployed, and by what?
func ExampleView_Locks() {
	ctx := context.Background()
	server := memory.New()
	client, err := zamok.New(server, &zamok.Config{Name: "deployer"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"deploy-web", "deploy-api", "backup"} {
		if _, err := client.Mutex(name, nil).Lock(ctx); err != nil {
			log.Fatal(err)
		}
	}

	in, err := inspect.New(server, "")
	if err != nil {
		log.Fatal(err)
	}
	view, err := in.Look(ctx)
	for err == nil && (len(view.Processes) == 0 || view.Processes[0].Holding < 3) {
		time.Sleep(10 * time.Millisecond) // a process says within a second what it holds
		view, err = in.Look(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	for l, err := range view.Locks(ctx, "deploy-*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Name, "is held by", l.First().Service)
	}
	// Output:
	// deploy-api is held by deployer
	// deploy-web is held by deployer
}
