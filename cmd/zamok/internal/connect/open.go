package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// UnreachableError tells that no usable answer came within the time given.
type UnreachableError struct {
	Target Target
	Within time.Duration
	Err    error // the last failure
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s within %v: %v", e.Target, e.Within, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// RefusedError tells that the server answered, and wants nothing to do with us.
type RefusedError struct {
	Target Target
	Err    error // the server's words
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %v", e.Target, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// SetupError tells that TLS does not work with these files and this server, and
// will not by trying again.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return "cannot use TLS: " + e.Err.Error() }

func (e *SetupError) Unwrap() error { return e.Err }

// Open connects to the server and returns when it has answered. It tries again
// until within is over, since a server may be starting; if once is set, a refused
// connection is the end, since then nobody has said that there is a server.
//
// The client is go-redis: it connects when it is used, so that a server that
// hangs at start costs no more than the time given, and it serves Sentinel, TLS
// and unix sockets alike. Its own repetitions are off: zamok has its own, with
// their own limits.
func Open(ctx context.Context, t Target, files TLS, within time.Duration, once bool) (redis.UniversalClient, error) {
	client, err := Dial(t, files, within)
	if err != nil {
		return nil, err
	}
	if err := Await(ctx, client, t, within, once); err != nil {
		go client.Close() // a hung handshake holds it up to its own limit
		return nil, err
	}
	return client, nil
}

// Dial is Open without the waiting: it sends nothing.
func Dial(t Target, files TLS, within time.Duration) (redis.UniversalClient, error) {
	conf, err := files.config(t)
	if err != nil {
		return nil, &SetupError{Err: err}
	}
	logging.Disable() // it writes to stderr what our own errors tell as well, in other words
	step := min(within, 5*time.Second)
	if t.Master != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: t.Master, SentinelAddrs: t.Addrs,
			SentinelUsername: t.SentinelUser, SentinelPassword: t.SentinelPassword,
			Username: t.User, Password: t.Password, DB: t.DB, TLSConfig: conf,
			MaxRetries: -1, DialTimeout: step, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
			ContextTimeoutEnabled: true, PoolSize: 4, DisableIdentity: true,
		}), nil
	}
	if t.Cluster {
		// It goes after MOVED and ASK; other repetitions are off here, too.
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: t.Addrs, Username: t.User, Password: t.Password, TLSConfig: conf,
			MaxRetries: -1, DialerRetries: 1, DialTimeout: step, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
			ContextTimeoutEnabled: true, PoolSize: 4, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}), nil
	}
	o := &redis.Options{
		Username: t.User, Password: t.Password, DB: t.DB, TLSConfig: conf,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: step, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
		ContextTimeoutEnabled: true, PoolSize: 4, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.Network, o.Addr = "tcp", t.Socket; t.Socket != "" {
		o.Network = "unix"
	} else {
		o.Addr = t.Addrs[0]
		if conf != nil && conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(o.Addr)
		}
	}
	return redis.NewClient(o), nil
}

// Await sends PING until it is answered; within and once are as of Open.
func Await(ctx context.Context, client redis.UniversalClient, t Target, within time.Duration, once bool) error {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	last := errSilent
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := ping(limited, client)
		if err == nil {
			return nil
		}
		if limited.Err() == nil || errors.Is(last, errSilent) { // what the end of the time cut short tells less
			last = plain(err)
		}
		if t.Master != "" {
			err = ofSentinels(err)
		}
		if itself, final := refusal(err); itself {
			if final {
				return &RefusedError{Target: t, Err: err}
			}
		} else if noTLS(err) {
			return &SetupError{Err: err}
		} else if once && notThere(err) {
			return &UnreachableError{Target: t, Within: within, Err: last}
		}
		select {
		case <-time.After(wait):
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &UnreachableError{Target: t, Within: within, Err: last}
		}
	}
}

// ping does not wait for the library longer than ctx: a handshake has limits of
// its own.
func ping(ctx context.Context, client redis.UniversalClient) error {
	answer := make(chan error, 1)
	go func() { answer <- client.Ping(ctx).Err() }()
	select {
	case err := <-answer:
		if err != nil && strings.HasPrefix(err.Error(), "NOPERM") {
			return nil // it answers, and PING is not what we are here for
		}
		return err
	case <-ctx.Done():
		select {
		case err := <-answer:
			return err
		default:
			return ctx.Err()
		}
	}
}

// refused is an error that is known to be the server's own although the library
// made a text of it.
type refused string

func (r refused) Error() string { return string(r) }

func (r refused) RedisError() {}

// ofSentinels finds what sentinels said in the text that the library makes of
// the errors of all of them.
func ofSentinels(err error) error {
	for _, said := range []string{"WRONGPASS", "NOAUTH", "NOPERM"} {
		if i := strings.Index(err.Error(), said); i >= 0 {
			return refused(err.Error()[i:])
		}
	}
	if strings.HasSuffix(err.Error(), redis.Nil.Error()) {
		return refused("No such master with that name")
	}
	return err
}

// refusal says whether the server itself sent err, and whether asking again is
// of no use.
func refusal(err error) (itself, final bool) {
	var re redis.Error
	if !errors.As(err, &re) || errors.Is(err, redis.Nil) {
		return false, false
	}
	for _, passing := range []string{"LOADING", "MASTERDOWN", "BUSY", "max number of clients"} {
		if strings.Contains(err.Error(), passing) {
			return true, false
		}
	}
	return true, true
}

// notThere: nobody listens, as opposed to somebody who does not answer.
func notThere(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// noTLS says whether the two sides do not trust or understand each other.
func noTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verify) || errors.As(err, &header) || errors.As(err, &alert)
}

// plain says in words of people what a library says of a silent server.
func plain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return errSilent
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the connection was closed (%w)", err)
	}
	return err
}

var errSilent = errors.New("the server does not answer")

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
