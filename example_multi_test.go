package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// bank moves money between accounts that lie in another service, which refuses a
// fence that is smaller than one it has seen for the account.
type bank struct {
	client   *zamok.Client
	accounts map[string]int
}

// transfer has both accounts while it runs, so nobody sees the money on its way, and
// two transfers of the same pair in opposite directions do not wait for each other.
func (b *bank) transfer(ctx context.Context, from, to string, amount int) error {
	both := b.client.Multi([]string{"account:" + from, "account:" + to}, nil)
	return both.Do(ctx, func(ctx context.Context) error {
		// ctx ends when either lock is lost.
		if b.accounts[from] < amount {
			return errors.New("not enough money")
		}
		leases := zamok.LeasesFrom(ctx)
		b.put(from, -amount, leases.Lease("account:"+from).Fence())
		b.put(to, amount, leases.Lease("account:"+to).Fence())
		return nil
	})
}

func (b *bank) put(account string, amount int, _ int64) { b.accounts[account] += amount }

// A transfer between two accounts needs both of them, or none.
func ExampleMulti_Do() {
	client, err := zamok.New(memory.New(), nil) // or a driver for a Redis client
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	b := &bank{client: client, accounts: map[string]int{"ann": 100, "bob": 20}}
	fmt.Println(b.transfer(context.Background(), "ann", "bob", 30))
	fmt.Println(b.transfer(context.Background(), "bob", "ann", 200))
	fmt.Println("ann", b.accounts["ann"], "bob", b.accounts["bob"])
	// Output:
	// <nil>
	// not enough money
	// ann 70 bob 50
}
