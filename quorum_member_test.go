package zamok_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
)

// same is a second way to one server.
type same struct{ *memory.Server }

// replica is a server that says it is one.
type replica struct{ *memory.Server }

func (r replica) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	reply, err := r.Server.Do(ctx, limit, args...)
	if text, ok := reply.(string); ok && args[0] == "INFO" {
		reply = text + "# Replication\r\nrole:slave\r\nmaster_host:db\r\nmaster_port:6380\r\n"
	}
	return reply, err
}

// TestQuorumMistakesAreToldAtTheFirstUse: what happened, and what to do.
func TestQuorumMistakesAreToldAtTheFirstUse(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(nodes []zamok.Node, cfg *zamok.Config)
		says, hint string
	}{
		{"one server twice", func(n []zamok.Node, _ *zamok.Config) { n[2].Driver = same{n[0].Driver.(*memory.Server)} }, "are one server", "each once"},
		{"a replica", func(n []zamok.Node, _ *zamok.Config) { n[1].Driver = replica{n[1].Driver.(*memory.Server)} }, "m1 is a replica, of db:6380", "primaries"},
		{"other names", func(n []zamok.Node, _ *zamok.Config) { n[0].Name = "other" }, "has 3000 m0,m1,m2 and the client 3000 m1,m2,other", "names of its members"},
		{"another longest TTL", func(_ []zamok.Node, cfg *zamok.Config) { cfg.Quarantine = 4 * time.Second }, "has 3000 m0,m1,m2 and the client 4000 m0,m1,m2", "Config.Quarantine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inQuorum(t, 3, func(t *testing.T, all members) {
				nodes, cfg := []zamok.Node{{Name: "m0", Driver: all[0]}, {Name: "m1", Driver: all[1]}, {Name: "m2", Driver: all[2]}}, zamok.Config{TTL: 3 * time.Second, Quarantine: 3 * time.Second}
				c.change(nodes, &cfg)
				client, err := zamok.NewQuorum(nodes, &cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				for range 3 {
					_, err = client.Mutex("job", nil).Lock(t.Context())
					var refused *zamok.ServerError
					if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) || !strings.Contains(refused.Hint, c.hint) {
						t.Errorf("got %v, want a *ServerError that says %q and %q", err, c.says, c.hint)
					}
				}
				pass(5 * time.Second)
				all.left(t)
			})
		})
	}
	var bad *zamok.ConfigError
	inQuorum(t, 3, func(t *testing.T, all members) {
		if _, err := all.client(t).Mutex("job", &zamok.MutexConfig{TTL: 4 * time.Second}).Lock(t.Context()); !errors.As(err, &bad) || bad.Field != "MutexConfig.TTL" {
			t.Errorf("a TTL beyond the quarantine: %v", err)
		}
	})
}

// TestQuorumMemberThatBecomesAReplica: it does not count, and the others go on.
func TestQuorumMemberThatBecomesAReplica(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m2 := &turning{Server: all[2]}
		c := all.clientOver(t, func(d driver.Driver) driver.Driver {
			if d == driver.Driver(all[2]) {
				return m2
			}
			return d
		})
		m := c.Mutex("job", nil)
		release(t, lock(t, m))
		m2.turned.Store(true)
		all[2].Down(nil)
		release(t, lock(t, m))
		all[2].Up()
		votes := all[2].Calls()["vote"]
		for range 3 {
			release(t, lock(t, m))
		}
		if n := all[2].Calls()["vote"]; n != votes {
			t.Errorf("it was asked for %d votes", n-votes)
		}
		pass(5 * time.Second)
		all.left(t)
	})
}

// turning is a server that comes back as a replica.
type turning struct {
	*memory.Server
	turned atomic.Bool
}

func (s *turning) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	if s.turned.Load() {
		return replica{s.Server}.Do(ctx, limit, args...)
	}
	return s.Server.Do(ctx, limit, args...)
}

// TestQuorumCase43: a lock that is there on one of three is not held.
func TestQuorumCase43(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		all[1].Hang()
		all[2].Hang()
		<-l.Context().Done()
		if err := l.Err(); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if err := l.Check(t.Context()); err == nil {
			t.Error("one of three says that it is held")
		}
		if all[0].Type("lock:job") != "string" {
			t.Error("m0 has it no more, so this tried nothing")
		}
		all[1].Unhang()
		all[2].Unhang()
		release(t, lock(t, all.client(t).Mutex("job", nil)))
		pass(5 * time.Second)
		all.left(t)
	})
}

// TestQuorumCase44: a member that comes back empty is no vote for whoever lost.
func TestQuorumCase44(t *testing.T) {
	inQuorum(t, 5, func(t *testing.T, all members) {
		all[3].Hang()
		all[4].Hang()
		l := lock(t, all.client(t).Mutex("job", nil)) // by m0, m1 and m2
		all[3].Unhang()
		all[4].Unhang()
		all[0].Wipe()
		all[0].Restart()
		for range 20 {
			if _, err := all.client(t).Mutex("job", nil).TryLock(t.Context()); err == nil {
				t.Fatal("a second one holds")
			}
			pass(100 * time.Millisecond)
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
		}
		pass(5 * time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("after the quarantine: %v", err)
		}
		release(t, l)
	})
}
