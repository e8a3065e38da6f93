package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// exports serves one export at a time for each user. Whoever cannot have the lock
// soon is told why and does not keep a connection open.
type exports struct {
	client *zamok.Client
	make   func(ctx context.Context, user string) string
}

func (e *exports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	m := e.client.Mutex("export:"+user, &zamok.MutexConfig{Wait: 20 * time.Millisecond, Reason: "export"})
	err := m.Do(r.Context(), func(ctx context.Context) error {
		_, err := io.WriteString(w, e.make(ctx, user))
		return err
	})
	var held *zamok.HeldError
	var mistake *zamok.ConfigError
	switch {
	case err == nil:
	case errors.As(err, &held):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "another export runs, "+held.Describe(), http.StatusConflict)
	case errors.As(err, &mistake):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default: // the lock server does not answer, or the lease was lost
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}

// A lock for each user in an HTTP handler, with a limit to the waiting.
func ExampleMutexConfig_wait() {
	server := memory.New()
	client, _ := zamok.New(server, &zamok.Config{GiveUp: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	defer client.Close()
	handler := &exports{client: client, make: func(_ context.Context, user string) string { return "export of " + user }}
	get := func(user string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user="+user, nil))
		text := w.Body.String()
		if w.Code == http.StatusConflict {
			fmt.Println(w.Code, "names the holder:", strings.Contains(text, "held by "))
			return
		}
		fmt.Println(w.Code, strings.TrimSpace(text))
	}

	get("ann")
	busy, _ := client.Mutex("export:ann", nil).Lock(context.Background())
	get("ann")
	get("bob")
	get("")
	server.Down(nil)
	get("bob")
	server.Up()
	_ = busy.Release(context.Background())
	// Output:
	// 200 export of ann
	// 409 names the holder: true
	// 200 export of bob
	// 200 export of
	// 503 try again later
}
