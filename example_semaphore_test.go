package zamok_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// An API takes only four calls at a time, from the whole fleet. A counter with INCR
// and DECR would leak with each process that dies in between; a permit ends by
// itself.
func ExampleSemaphore_Do() {
	client, err := zamok.New(memory.New(), nil) // or a driver for a Redis client
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	api := client.Semaphore("geocoder", 4, nil)
	err = api.Do(context.Background(), func(ctx context.Context) error {
		// ctx ends when the permit does.
		fmt.Println("looked up under permit of", zamok.LeaseFrom(ctx).Name())
		return ctx.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// looked up under permit of geocoder
}
