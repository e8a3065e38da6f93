package itest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// attempts are the calls that must fail in the same way.
var attempts = []struct {
	name string
	call func(t *testing.T, m *zamok.Mutex) error
}{
	{"TryLock", func(t *testing.T, m *zamok.Mutex) error { _, err := m.TryLock(t.Context()); return err }},
	{"Lock", func(t *testing.T, m *zamok.Mutex) error { return receive(t, goLock(t.Context(), m), "error").err }},
	{"Do", func(t *testing.T, m *zamok.Mutex) error {
		done := make(chan error, 1)
		go func() { done <- m.Do(t.Context(), mustNotRun(t)) }()
		return receive(t, done, "error")
	}},
}

// unavailable: the outcome is that nobody knows, and the words are the server's
// or the network's.
func unavailable(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: no %q in %q", what, w, err)
		}
	}
}

// refused: trying again is of no use, and the hint says what is.
func refused(t *testing.T, what string, err error, code string, denied bool) {
	t.Helper()
	var r *zamok.ServerError
	if !errors.As(err, &r) || r.Code != code || r.Denied() != denied || errors.Is(err, zamok.ErrHeld) || errors.Is(err, zamok.ErrUnavailable) {
		t.Errorf("%s: %v", what, err)
		return
	}
	if r.Hint == "" || !strings.Contains(err.Error(), r.Hint) {
		t.Errorf("%s: no hint in %q", what, err)
	}
}

const giveUp = 3 * time.Second

// Side by side, since each takes as long as GiveUp: the default, for that is
// what users see.
func TestBadServerMissing(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		s.Kill()
		for _, a := range attempts {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				err := a.call(t, c.Mutex("job", nil))
				unavailable(t, a.name, err)
				// go-redis goes on dialling for longer than a try may last.
				if !strings.Contains(err.Error(), "refused") && (lib.name != "goredis" || !strings.Contains(err.Error(), "no answer within")) {
					t.Errorf("no reason in %v", err)
				}
				if took := time.Since(start); took < 5*time.Second || counted(start, time.Now()) > 2*5*time.Second {
					t.Errorf("said after %v", took)
				}
			})
		}
	})
}

// go-redis connects when it first must; rueidis refuses to make a client at
// all, so for it the password comes into force later.
func TestBadPassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--requirepass", "right")
	for url, code := range map[string]string{
		s.URL(): "NOAUTH",
		strings.Replace(s.URL(), "redis://", "redis://:wrong@", 1): "WRONGPASS",
	} {
		c := libraries[0].client(t, url, nil)
		for _, a := range attempts {
			start := time.Now()
			refused(t, a.name, a.call(t, c.Mutex("job", nil)), code, true)
			if took := time.Since(start); slow(start, time.Now(), 100*time.Millisecond) {
				t.Errorf("%s: said after %v", a.name, took)
			}
		}
	}
}

func TestBadPasswordComesIntoForce(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{GiveUp: 3 * time.Second})
		release(t, tryLock(t, c.Mutex("job", nil)))
		s.MustDo("CONFIG", "SET", "requirepass", "right")
		s.MustDo("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		for _, a := range attempts {
			refused(t, a.name, a.call(t, c.Mutex("job", nil)), "NOAUTH", true)
		}
	})
}

func TestBadRights(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		for user, rules := range map[string][]string{
			"noscript":  {"~*", "&*", "+@all", "-@scripting"},
			"noevalsha": {"~*", "&*", "+@all", "-evalsha"},
			"nokeys":    {"~other:*", "&*", "+@all"},
			"nohelp":    {"~lock:*", "&*", "+@all"},
			"noset":     {"~*", "&*", "+@all", "-set"},
		} {
			s.MustDo(append([]string{"ACL", "SETUSER", user, "on", ">secret"}, rules...)...)
			url := strings.Replace(s.URL(), "redis://", "redis://"+user+":secret@", 1)
			c := lib.client(t, url, nil)
			for _, a := range attempts {
				start := time.Now()
				refused(t, user+" "+a.name, a.call(t, c.Mutex("job", nil)), "NOPERM", true)
				if took := time.Since(start); slow(start, time.Now(), 100*time.Millisecond) {
					t.Errorf("%s %s: said after %v", user, a.name, took)
				}
				if s.has(t, "lock:job") || s.has(t, queue("job")) {
					t.Errorf("%s %s: left %q", user, a.name, s.keys(t))
				}
			}
		}
	})
}

func TestBadReplica(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		primary := startServer(t, "--repl-diskless-sync-delay", "0")
		host, port, _ := strings.Cut(primary.Addr(), ":")
		replica := startServer(t, "--replicaof", host+" "+port)
		within(t, patience, "it is in step", func() bool {
			info, _ := replica.MustDo("INFO", "replication").(string)
			return strings.Contains(info, "master_link_status:up")
		})
		c := lib.client(t, replica.URL(), &zamok.Config{GiveUp: giveUp})
		for _, held := range []bool{false, true} {
			if held { // a stale "held" must not be believed either
				tryLock(t, lib.client(t, primary.URL(), nil).Mutex("job", nil))
				within(t, patience, "the replica has it", func() bool { return replica.has(t, "lock:job") })
			}
			for _, a := range attempts {
				unavailable(t, a.name, a.call(t, c.Mutex("job", nil)), "READONLY")
			}
			if !held && len(primary.keys(t)) != 0 {
				t.Errorf("left %q", primary.keys(t))
			}
		}
	})
}
