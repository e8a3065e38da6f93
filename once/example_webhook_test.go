package once_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
)

// webhook takes deliveries, which their sender repeats until it gets a 2xx. The
// delivery's id is the key and its body is the input: an id that comes with another
// body is a mistake of the sender, and no delivery to be ignored.
func webhook(o *once.Once, handle func(ctx context.Context, body []byte) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
			return
		}
		out, err := once.Do(r.Context(), o.WithInput(body), "delivery/"+r.Header.Get("Delivery-Id"), func(ctx context.Context, _ once.Run) (string, error) {
			return handle(ctx, body)
		})
		switch {
		case err == nil:
			fmt.Fprint(w, out.Value)
		case errors.Is(err, once.ErrMismatch):
			http.Error(w, "this id had another body", http.StatusConflict)
		case errors.Is(err, zamok.ErrHeld):
			http.Error(w, "at work on it", http.StatusServiceUnavailable)
		default:
			http.Error(w, "try again", http.StatusInternalServerError)
		}
	}
}

// A webhook that is delivered more than once is handled until that went well, and
// then answered with the same answer.
func ExampleOnce_WithInput() {
	server := memory.New()
	oncetest.Define(server)
	client, _ := zamok.New(server, nil)
	defer client.Close()
	o, _ := once.New(client, &once.Config{Policy: once.Retry, Wait: 5 * time.Second, Retention: 72 * time.Hour})

	hook := webhook(o, func(_ context.Context, body []byte) (string, error) {
		fmt.Println("handling", string(body))
		return "order created", nil
	})
	deliver := func(id, body string) {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		r.Header.Set("Delivery-Id", id)
		w := httptest.NewRecorder()
		hook(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	deliver("d-1", "3 apples")
	deliver("d-1", "3 apples")
	deliver("d-1", "300 apples")
	// Output:
	// handling 3 apples
	// 200 order created
	// 200 order created
	// 409 this id had another body
}
