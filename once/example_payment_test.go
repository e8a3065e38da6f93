package once_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
)

// bank is a payment service that takes idempotency keys, as most do: a second
// request with the same key is answered with the receipt of the first.
type bank struct {
	receipts map[string]string
	charged  int
	lose     bool // the next answer gets lost
}

func (b *bank) charge(idempotencyKey string, cents int) (receipt string, err error) {
	if b.receipts[idempotencyKey] == "" {
		b.charged += cents
		b.receipts[idempotencyKey] = fmt.Sprint("receipt over ", cents)
	}
	if b.lose {
		b.lose = false
		return "", errors.New("timeout")
	}
	return b.receipts[idempotencyKey], nil
}

// A payment must be made, so it is tried again after whatever went wrong: Retry. It
// must not be made twice, and only the bank can see to that: Run.ID is the same for
// each try, whichever process makes it.
func ExampleRun() {
	ctx := context.Background()
	server := memory.New()
	oncetest.Define(server)
	client, _ := zamok.New(server, nil)
	defer client.Close()
	o, _ := once.New(client, &once.Config{Policy: once.Retry})

	b := &bank{receipts: map[string]string{}, lose: true}
	for range 3 {
		out, err := once.Do(ctx, o, "invoice/17", func(_ context.Context, run once.Run) (string, error) {
			fmt.Println("attempt", run.Attempt)
			return b.charge(run.ID, 1000)
		})
		fmt.Printf("%q, replayed: %v, error: %v\n", out.Value, out.Replayed, err)
	}
	fmt.Println("charged:", b.charged)
	// Output:
	// attempt 1
	// "", replayed: false, error: timeout
	// attempt 2
	// "receipt over 1000", replayed: false, error: <nil>
	// "receipt over 1000", replayed: true, error: <nil>
	// charged: 1000
}
