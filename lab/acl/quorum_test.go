package acl

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// TestQuorumNeedsInfo: and nothing else beside what a lock needs, of each member.
func TestQuorumNeedsInfo(t *testing.T) {
	var servers []*drivertest.Server
	var members []zamok.Node
	for i := range 3 {
		s := start(t, granted())
		servers = append(servers, s)
		members = append(members, zamok.Node{Name: fmt.Sprint("node", i), Driver: dials[i%2].open(t, s.Addr())})
	}
	cfg := zamok.Config{TTL: 2 * time.Second, Quarantine: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	client, err := zamok.NewQuorum(members, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	m := client.Mutex("job", nil)
	_, err = m.Lock(t.Context())
	var refused *zamok.ServerError
	if !errors.As(err, &refused) || !refused.Denied() {
		t.Errorf("without +info: %v", err)
	}
	for _, s := range servers {
		s.MustDo("ACL", "SETUSER", "app", "+info")
		s.MustDo("ACL", "LOG", "RESET")
	}
	lease, err := m.Lock(t.Context()) // after their quarantine
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		next, err := m.Lock(t.Context())
		if err == nil {
			err = next.Release(t.Context())
		}
		waits <- err
	}()
	if err := lease.Extend(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if err := lease.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range servers {
		for _, entry := range s.MustDo("ACL", "LOG").([]any) {
			if e := fmt.Sprint(entry); !strings.Contains(e, "client|") && !strings.Contains(e, "cluster|") {
				t.Errorf("the server refused something: %s", e)
			}
		}
	}
}
