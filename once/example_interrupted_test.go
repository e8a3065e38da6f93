package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
)

// A process dies while it sends a mail. Under GiveUp nobody sends it again; somebody
// who can find out whether it was sent says so.
func ExampleResolve() {
	ctx := context.Background()
	server := memory.New()
	oncetest.Define(server)
	client, _ := zamok.New(server, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
	defer client.Close()
	o, _ := once.New(client, &once.Config{Policy: once.GiveUp})

	_, err := once.Do(ctx, o, "mail/7", func(context.Context, once.Run) (string, error) {
		server.Del("lock:once/mail/7") // as if the process had died here
		return "<7@example.com>", nil
	})
	fmt.Println(errors.Is(err, once.ErrNotStored))

	again := func() (once.Outcome[string], error) {
		return once.Do(ctx, o, "mail/7", func(context.Context, once.Run) (string, error) {
			fmt.Println("sent twice")
			return "", nil
		})
	}
	_, err = again()
	fmt.Println(errors.Is(err, once.ErrInterrupted))

	// The mail server's log has it. (If it had not: o.Forget, and the next Do sends.)
	if _, err := once.Resolve(ctx, o, "mail/7", "<7@example.com>"); err != nil {
		fmt.Println(err)
	}
	out, err := again()
	fmt.Println(out.Value, out.Replayed, err)
	// Output:
	// true
	// true
	// <7@example.com> true <nil>
}
