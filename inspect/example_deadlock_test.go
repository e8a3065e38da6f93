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

// Two services took two locks in different orders.
func ExampleDeadlocks() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := memory.New()
	take := func(service, name string) (*zamok.Client, *zamok.Lease) {
		client, err := zamok.New(server, &zamok.Config{Name: service})
		if err != nil {
			log.Fatal(err)
		}
		lease, err := client.Mutex(name, nil).Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return client, lease
	}
	billing, customer := take("billing", "customer-7")
	mailer, invoice := take("mailer", "invoice-9")
	// Each with the context of its lease, so that it is known under what it waits.
	go billing.Mutex("invoice-9", nil).Lock(customer.Context())
	go mailer.Mutex("customer-7", nil).Lock(invoice.Context())

	in, err := inspect.New(server, "")
	if err != nil {
		log.Fatal(err)
	}
	var circles []inspect.Deadlock
	for circles == nil {
		time.Sleep(10 * time.Millisecond)
		view, err := in.Look(ctx)
		if err != nil {
			log.Fatal(err)
		}
		var locks []inspect.Lock
		for l, err := range view.Locks(ctx, "") {
			if err != nil {
				log.Fatal(err)
			}
			locks = append(locks, l)
		}
		circles = inspect.Deadlocks(locks)
	}
	for _, d := range circles {
		fmt.Println("sure:", d.Sure)
		for _, m := range d.Members {
			fmt.Println(m.Service, "holds", m.Name)
		}
	}
	// Output:
	// sure: true
	// billing holds customer-7
	// mailer holds invoice-9
}
