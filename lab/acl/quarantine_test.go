package acl

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// TestQuarantineNeedsInfo: and nothing else beside what a lock needs.
func TestQuarantineNeedsInfo(t *testing.T) {
	server := start(t, granted())
	for _, d := range dials {
		t.Run(d.name, func(t *testing.T) {
			server.MustDo("FLUSHALL")
			server.MustDo("ACL", "SETUSER", "app", "-info")
			client, err := zamok.New(d.open(t, server.Addr()), &zamok.Config{Quarantine: time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Mutex("job", nil).Lock(t.Context())
			var refused *zamok.ServerError
			if !errors.As(err, &refused) || !refused.Denied() {
				t.Errorf("without +info: %v", err)
			}
			server.MustDo("ACL", "SETUSER", "app", "+info")
			lease, err := client.Mutex("job", nil).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
