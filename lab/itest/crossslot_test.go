package itest

import (
	"errors"
	"testing"

	"github.com/zamok-go/zamok"
)

// A guarded script's key in another slot than the lock's is the caller's mistake:
// an error that says so, also where the client library would panic, and the lease
// goes on.
func TestCase28ScriptKeyInAnotherSlot(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startShard(t)
		l := tryLock(t, lib.client(t, s.URL(), nil).Mutex("job", nil))
		_, err := l.Run(t.Context(), writeScript, []string{"elsewhere"}, "x")
		var refused *zamok.ServerError
		if !errors.As(err, &refused) || refused.Code != "CROSSSLOT" || refused.Hint == "" {
			t.Errorf("got %v, want CROSSSLOT", err)
		}
		if s.has(t, "elsewhere") {
			t.Error("the script ran")
		}
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("the lease: %v", err)
		}
		release(t, l)
	})
}
