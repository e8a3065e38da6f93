package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
)

// onTime is what each host's scheduler calls. nominal is the time that stands in the
// schedule, and not the time that the host's clock tells.
func onTime(ctx context.Context, host string, job *once.Job, nominal time.Time) {
	err := once.Tick(ctx, job, nominal, func(context.Context, once.Run) error {
		fmt.Println(host, "makes the report of", nominal.Format("15:04"))
		return nil
	})
	switch {
	case errors.Is(err, once.ErrTaken): // the usual case on all hosts but one
		fmt.Println(host, "has nothing to do")
	case errors.Is(err, once.ErrOverlap):
		fmt.Println("ALARM: the report takes longer than an hour")
	case err != nil:
		fmt.Println("ALARM:", err)
	}
}

// A cron job of several hosts has one run each time, however their clocks differ.
func ExampleTick() {
	ctx := context.Background()
	server := memory.New()
	oncetest.Define(server)
	client, _ := zamok.New(server, nil)
	defer client.Close()
	job, err := once.NewJob(client, "report", nil)
	if err != nil {
		fmt.Println(err)
	}

	three := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	onTime(ctx, "host a", job, three)
	onTime(ctx, "host b", job, three)                // a second later
	onTime(ctx, "host a", job, three.Add(time.Hour)) // at four
	onTime(ctx, "host c", job, three)                // its clock is an hour behind
	// Output:
	// host a makes the report of 03:00
	// host b has nothing to do
	// host a makes the report of 04:00
	// host c has nothing to do
}
