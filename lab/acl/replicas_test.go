package acl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// A right that only Config.WaitReplicas needs: without it the lock is refused, and not
// left behind.
func TestWaitReplicasNeedsOneRightMore(t *testing.T) {
	server := start(t, granted())
	for _, d := range dials {
		t.Run(d.name, func(t *testing.T) {
			server.MustDo(append([]string{"ACL", "SETUSER", "app", "reset"}, granted()...)...)
			client, err := zamok.New(d.open(t, server.Addr()), &zamok.Config{WaitReplicas: 1, WaitTimeout: 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Mutex("life", nil).Lock(t.Context())
			var refused *zamok.ServerError
			if !errors.As(err, &refused) || !refused.Denied() || !strings.Contains(refused.Hint, "+wait") {
				t.Errorf("without +wait: %v", err)
			}
			server.MustDo("ACL", "SETUSER", "app", "+wait")
			_, err = client.Mutex("wait", nil).Lock(t.Context())
			if !errors.As(err, new(*zamok.ReplicasError)) { // it has none
				t.Errorf("with +wait: %v", err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if n := server.MustDo("EXISTS", "lock:life", "lock:wait"); n != int64(0) {
				t.Errorf("%v locks are left", n)
			}
		})
	}
}
