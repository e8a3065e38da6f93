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

var errRefused = errors.New("connection refused")

// postOffice takes mails, from the second try on.
type postOffice struct{ tries int }

func (p *postOffice) send(to string) (messageID string, err error) {
	if p.tries++; p.tries == 1 {
		return "", errRefused
	}
	fmt.Println("mail to", to)
	return "<1@example.com>", nil
}

// welcome sends a mail that nobody should get twice. Rather none than two: GiveUp.
func welcome(ctx context.Context, o *once.Once, post *postOffice, user string) (string, error) {
	out, err := once.Do(ctx, o, "welcome/"+user, func(context.Context, once.Run) (string, error) {
		id, err := post.send(user)
		if errors.Is(err, errRefused) {
			return "", once.Again(err) // surely not sent
		}
		return id, err
	})
	return out.Value, err
}

// An e-mail is sent at most once, whichever process is asked to, and however often.
func ExampleDo() {
	ctx := context.Background()
	server := memory.New()
	oncetest.Define(server)
	client, _ := zamok.New(server, nil)
	defer client.Close()
	o, err := once.New(client, &once.Config{Policy: once.GiveUp})
	if err != nil {
		fmt.Println(err)
	}

	post := &postOffice{}
	for range 3 {
		fmt.Println(welcome(ctx, o, post, "ann"))
	}
	// Output:
	//  connection refused
	// mail to ann
	// <1@example.com> <nil>
	// <1@example.com> <nil>
}
