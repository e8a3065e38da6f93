package once

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/keys"
)

// Policy is what a call does when it finds that an earlier run of the key began
// and did not tell its end: its process died, or it lost its lease.
type Policy string

// The policies.
const (
	// GiveUp: it does not run again, and the caller gets an *InterruptedError, as
	// everybody does after it until Resolve, Forget, or the end of the retention
	// time. At most once. An error of the function is stored and replayed, except
	// with Again.
	GiveUp Policy = "give up"

	// Retry: it runs again. At least once, one run at a time. An error of the
	// function lets the next call run it again, except with Final.
	Retry Policy = "retry"
)

const (
	defaultRetention = 24 * time.Hour
	minRetention     = time.Second
	maxRetention     = 5 * 365 * 24 * time.Hour
)

// Config is how the keys of an Once are treated. The zero value of every field
// but Policy is its default.
type Config struct {
	// Policy must be chosen: GiveUp or Retry. All callers of a key should have the
	// same. Where they differ, a run that began under GiveUp is not run again.
	// Default: none.
	Policy Policy

	// Retention is how long the end of a run is remembered, 1 s to 5 years. The
	// same key may run again after that. It is also the longest time of a run
	// (zamok.MutexConfig.MaxHold). Default: 24 h.
	Retention time.Duration

	// TTL of the lease of a run, 100 ms to 24 h: what a crash costs those who
	// wait. It is renewed, so it is not the longest time of a run. Default:
	// zamok.Config.TTL.
	TTL time.Duration

	// Wait is the longest that a call waits for a run that goes on elsewhere, after
	// which it returns a *zamok.HeldError. Default: as long as ctx.
	Wait time.Duration

	// Grace is how long before the end of the lease the function's context ends, so
	// that what it does has time to stop. At most half of TTL and of Retention.
	// Default: that of zamok.MutexConfig.Grace.
	Grace time.Duration

	// Reason is shown to those who wait, and by zamok show. At most 256 bytes.
	// Default: none.
	Reason string
}

// Once does things once, by key. It is immutable and may be used from many
// goroutines.
type Once struct {
	client *zamok.Client
	cfg    Config
	input  string // fingerprint; empty: none
}

// New makes an Once. It sends nothing. The error is a *zamok.ConfigError.
func New(client *zamok.Client, cfg *Config) (*Once, error) {
	if client == nil {
		return nil, badField("client", "it is nil")
	}
	o := &Once{client: client}
	if cfg != nil {
		o.cfg = *cfg
	}
	if o.cfg.Retention == 0 {
		o.cfg.Retention = defaultRetention
	}
	switch r := o.cfg.Retention; {
	case o.cfg.Policy != GiveUp && o.cfg.Policy != Retry:
		return nil, badField("once.Config.Policy", "%q; choose GiveUp (at most once) or Retry (at least once): nobody else can", o.cfg.Policy)
	case r < minRetention || r > maxRetention:
		return nil, badField("once.Config.Retention", "%v; it must be %v to %v", r, minRetention, maxRetention)
	}
	if err := checkMutex(client, o.mutexConfig()); err != nil {
		return nil, err
	}
	return o, nil
}

// checkMutex has a lock check what of the configuration is its own: it tells a
// mistake before it looks at ctx, and with a ctx that has ended it sends nothing.
func checkMutex(client *zamok.Client, cfg *zamok.MutexConfig) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var bad *zamok.ConfigError
	if _, err := client.Mutex("once", cfg).TryLock(ended); errors.As(err, &bad) {
		return bad
	}
	return nil
}

// WithInput returns an Once for calls with this input, such as the body of a
// request. A call whose input differs from that of the run that is remembered gets
// a *MismatchError: the same key was used for two things. Only a hash is stored. A
// call without an input is not compared.
func (o *Once) WithInput(input []byte) *Once {
	with := *o
	sum := sha256.Sum256(input)
	with.input = base64.RawURLEncoding.EncodeToString(sum[:])
	return &with
}

func (o *Once) mutexConfig() *zamok.MutexConfig {
	return &zamok.MutexConfig{TTL: o.cfg.TTL, Wait: o.cfg.Wait, MaxHold: o.cfg.Retention, Grace: o.cfg.Grace, Reason: o.cfg.Reason}
}

// place is where a key lives on the server.
type place struct {
	lock   string // the name of the lock
	record string // key of the record
	id     string // Run.ID
}

func (o *Once) place(key string) (place, error) {
	if key == "" {
		return place{}, badField("key", "it is empty")
	}
	name := "once/" + key
	set, err := keys.ForName(o.client.Prefix(), name)
	if err != nil {
		return place{}, &zamok.ConfigError{Field: "key", Err: err}
	}
	return place{lock: name, record: set.Once(), id: stableID(set.Lock)}, nil
}

// stableID makes an id of the text, in the form of a UUID (version 8 of RFC 9562),
// which most services take. It is drawn from the key and not at random, so that a
// server that lost its data does not make downstream services forget too.
func stableID(text string) string {
	b := sha256.Sum256([]byte("zamok/once\x00" + text))
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func badField(field, format string, args ...any) error {
	return &zamok.ConfigError{Field: field, Err: fmt.Errorf(format, args...)}
}

var (
	errNil         = errors.New("it is nil")
	errNilOnce     = &zamok.ConfigError{Field: "once", Err: errNil}
	errNilFunction = &zamok.ConfigError{Field: "function", Err: errNil}
)
