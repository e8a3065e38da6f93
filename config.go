package zamok

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/internal/keys"
)

const (
	minTTL        = 100 * time.Millisecond
	maxTTL        = 24 * time.Hour
	defaultTTL    = 15 * time.Second
	defaultGiveUp = 5 * time.Second

	defaultWaitTimeout = time.Second
	minWaitTimeout     = 10 * time.Millisecond
	maxWaitTimeout     = 10 * time.Second

	defaultHandOver = 5 * time.Millisecond
	maxHandOver     = 50 * time.Millisecond
	maxReason       = 256

	longestMaxHold = 10 * 365 * 24 * time.Hour // an instant must hold it
)

// Config is what all locks of a client share. The zero value of every field is
// its default.
type Config struct {
	// Prefix begins every key and channel, so that several applications can
	// share a server. At most 128 bytes. Default: none.
	Prefix string

	// TTL of the locks that set none of their own, 100 ms to 24 h.
	// Default: 15 s, or Quarantine if that is less.
	TTL time.Duration

	// Quarantine is for how long nobody is granted anything after the server was
	// restarted, failed over or wiped, and at its first use: data that it lost may
	// have said that somebody holds. Holders keep what is still there: they renew,
	// check, extend and release it, and guarded scripts run. Lock waits, TryLock
	// returns a *QuarantineError. It must be the longest TTL of any lease of the
	// deployment, 1 s to 24 h, and all its clients must say the same (a *ServerError
	// tells of one that does not); no TTL and no Extend may be longer. It needs the
	// right to run INFO, and is not for a cluster. It does not see a single key
	// that was evicted or deleted, nor two primaries at a time; a server's clock that
	// is set forward ends it early. Default: 0, none.
	Quarantine time.Duration

	// GiveUp is how long a call goes on trying while the server gives no usable
	// answer, before it fails with ErrUnavailable; it bounds Release, Check,
	// Extend and Run too. A waiter that stands in the queue goes on until its ctx
	// ends. Default: 5 s.
	GiveUp time.Duration

	// HandOver is how long the goroutines of this client may pass a lock on among
	// themselves, from when the server gave it to one of them, before the server
	// decides who is next: a Release then costs a microsecond or two and no request.
	// Who waits elsewhere waits so much longer at most, and one holding more. Each has
	// a lease and a fence of its own; on the server all of them are one holder, with
	// one token, and a client has at most one waiter for each lock. It is for Lock and
	// Do of a Mutex without MinHold and of the writer of an RWMutex, among those of one
	// TTL. A lease is not passed on whose Token was called, which was extended beyond
	// its TTL, or of which a call failed without an answer. At most 50 ms; below 4 ms
	// it does less, as fences do not run ahead of the clock; negative: never.
	// Default: 5 ms.
	HandOver time.Duration

	// WaitReplicas is how many replicas must have a lock before whoever it is granted to
	// is told, so that a failover to one of them keeps it. Everything that takes a lock
	// then costs one more request and, of rueidis, a connection of its own for that
	// time; when too few have it within WaitTimeout, the lock is given back and the
	// error is a *ReplicasError. What goroutines pass on among themselves (HandOver) was
	// waited for before.
	//
	// It is no consensus: it helps only if it is as many as all replicas that can be
	// promoted, and it is for the grant alone. A failover can take back renewals, after
	// which the lock ends earlier on the new primary than its holder counts on, unless
	// the next renewal comes through before; and a primary that is cut off goes on
	// unless it has min-replicas-to-write. Fences order the holders whatever happens.
	// Default: 0, none.
	WaitReplicas int

	// WaitTimeout is how long replicas are waited for, 10 ms to 10 s. A call may take
	// that much longer than its own limits. Default: 1 s.
	WaitTimeout time.Duration

	// Name of this service, for those who ask who holds a lock. At most 256
	// bytes. Default: the program's file name.
	Name string

	// Version of the program, for those who ask. At most 256 bytes. Default: that
	// of the main module, as it was built.
	Version string

	// Command is what this process runs, for those who ask; it must have no
	// secrets. At most 256 bytes. Default: the program's path, without arguments, or
	// the last 256 bytes of it.
	Command string

	// Under is the token of a lease under which the whole process runs: what
	// `zamok run` puts into ZAMOK_TOKEN, say. It serves to find deadlocks of
	// processes that wait for each other, and nothing else: a text that is no token
	// finds none. At most 256 bytes. Default: none.
	Under string

	// Logger takes what an operator should know: warnings of losses and of
	// renewals that fail, and that they work again. What goes well is not logged. No
	// password and no value of a script is ever logged. Default: slog.Default().
	Logger *slog.Logger

	// Trace has hooks for metrics. Default: none.
	Trace *Trace
}

func (c *Config) withDefaults() (Config, error) {
	var out Config
	if c != nil {
		out = *c
	}
	if err := keys.CheckPrefix(out.Prefix); err != nil {
		return out, &ConfigError{Field: "Config.Prefix", Err: err}
	}
	if out.TTL == 0 {
		out.TTL = defaultTTL
		if out.Quarantine > 0 {
			out.TTL = min(out.TTL, out.Quarantine)
		}
	}
	if err := out.checkTTL("Config.TTL", out.TTL); err != nil {
		return out, err
	}
	if out.GiveUp == 0 {
		out.GiveUp = defaultGiveUp
	}
	if out.GiveUp < 0 {
		return out, badField("Config.GiveUp", "%v is negative", out.GiveUp)
	}
	if out.HandOver == 0 {
		out.HandOver = defaultHandOver
	}
	if out.HandOver > maxHandOver {
		return out, badField("Config.HandOver", "%v is more than %v", out.HandOver, maxHandOver)
	}
	if out.WaitReplicas < 0 {
		return out, badField("Config.WaitReplicas", "%d is negative", out.WaitReplicas)
	}
	if out.WaitTimeout == 0 {
		out.WaitTimeout = defaultWaitTimeout
	}
	if out.WaitTimeout < minWaitTimeout || out.WaitTimeout > maxWaitTimeout {
		return out, badField("Config.WaitTimeout", "%v; it must be %v to %v", out.WaitTimeout, minWaitTimeout, maxWaitTimeout)
	}
	if out.Name == "" {
		out.Name = filepath.Base(os.Args[0])
	}
	if out.Version == "" {
		if info, ok := debug.ReadBuildInfo(); ok {
			out.Version = info.Main.Version
		}
	}
	if out.Command == "" { // of a long path the end, since a default must not be a mistake
		out.Command = os.Args[0][max(0, len(os.Args[0])-maxReason):]
	}
	for field, text := range map[string]string{"Name": out.Name, "Version": out.Version, "Command": out.Command, "Under": out.Under} {
		if len(text) > maxReason {
			return out, badField("Config."+field, "%d bytes; at most %d are allowed", len(text), maxReason)
		}
	}
	if out.Logger == nil {
		out.Logger = slog.Default()
	}
	if out.Trace == nil {
		out.Trace = &Trace{}
	}
	return out, nil
}

func checkTTL(field string, ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL {
		return badField(field, "%v; it must be %v to %v", ttl, minTTL, maxTTL)
	}
	return nil
}

// MutexConfig is what one lock wants to be different. The zero value of every
// field is its default.
type MutexConfig struct {
	// Key is the exact key, to share the lock with another library while
	// migrating: docs/migration.md. Default: Prefix + "lock:" + name.
	Key string

	// TTL is what a crash of the holder costs the next in line, 100 ms to 24 h.
	// Renewal goes on by itself while the lease is held, so it is not the
	// longest time of work. Default: Config.TTL.
	TTL time.Duration

	// Wait is the longest that Lock and Do wait, after which they return a
	// *HeldError, or an error that wraps ErrUnavailable when the server did not
	// answer (which may take 250 ms more). It does not end the lease's context; 0
	// is no limit, and not TryLock. Default: as long as ctx.
	Wait time.Duration

	// MinHold: released earlier, the name stays taken until so long after it
	// was acquired, also when MaxHold ends it, for cron jobs on hosts whose
	// clocks differ. At most 24 h. A holder that crashes or is cut off does not
	// leave it. Default: 0.
	MinHold time.Duration

	// MaxHold: the lease ends so long after it was acquired, renewed or not, and
	// its context Grace before that. 100 ms to 10 years. Default: never.
	MaxHold time.Duration

	// Grace: the lease's context ends this long before the lease can end on the
	// server, so that work has time to stop. At most half of TTL. Before the
	// first renewal of a lock that another holder passed on, which is granted
	// for 2 s, it is at most a quarter of that. Default: TTL/10, or a quarter of
	// MaxHold if that is less.
	Grace time.Duration

	// Reason is shown to those who wait. At most 256 bytes. Default: none.
	Reason string
}

// spec is a checked MutexConfig, with what scripts take in the form in which
// they take it.
type spec struct {
	kind    kind
	rw      bool // the writer of an RWMutex
	ownKey  bool // MutexConfig.Key
	keys    *keys.Set
	permits string // how many a semaphore has
	terms   *terms // of a quarantine; nil without
	ttl     time.Duration
	ttlMS   string
	wait    time.Duration // 0: no limit
	minHold time.Duration
	maxHold time.Duration // 0: none
	grace   time.Duration
	reason  string
}

func newSpec(base *Config, name string, c *MutexConfig) (*spec, error) {
	if c == nil {
		c = &MutexConfig{}
	}
	s := &spec{ttl: c.TTL, wait: c.Wait, minHold: c.MinHold, maxHold: c.MaxHold, grace: c.Grace, reason: c.Reason}
	var err error
	if c.Key != "" {
		s.ownKey = true
		s.keys, err = keys.ForKey(base.Prefix, name, c.Key)
	} else {
		s.keys, err = keys.ForName(base.Prefix, name)
	}
	if err == nil && keys.IsSemaphore(base.Prefix, c.Key) {
		return nil, badField("MutexConfig.Key", "%.64q is the key of a semaphore", c.Key)
	}
	if err != nil {
		field := "name"
		if _, bad := keys.ForName(base.Prefix, name); c.Key != "" && bad == nil {
			field = "MutexConfig.Key"
		}
		return nil, &ConfigError{Field: field, Err: err}
	}
	if s.ttl == 0 {
		s.ttl = base.TTL
	}
	if err := base.checkTTL("MutexConfig.TTL", s.ttl); err != nil {
		return nil, err
	}
	for field, d := range map[string]time.Duration{"Wait": s.wait, "MinHold": s.minHold, "MaxHold": s.maxHold, "Grace": s.grace} {
		if d < 0 {
			return nil, badField("MutexConfig."+field, "%v is negative", d)
		}
	}
	if s.grace == 0 {
		s.grace = s.ttl / 10
		if s.maxHold > 0 {
			s.grace = min(s.grace, s.maxHold/4)
		}
	}
	switch {
	case s.grace > s.ttl/2:
		return nil, badField("MutexConfig.Grace", "%v is more than half of the TTL, %v", s.grace, s.ttl)
	case s.minHold > maxTTL:
		return nil, badField("MutexConfig.MinHold", "%v is more than %v", s.minHold, maxTTL)
	case s.maxHold > 0 && s.maxHold < minTTL:
		return nil, badField("MutexConfig.MaxHold", "%v is less than %v", s.maxHold, minTTL)
	case s.maxHold > longestMaxHold:
		return nil, badField("MutexConfig.MaxHold", "%v is more than %v", s.maxHold, longestMaxHold)
	case s.maxHold > 0 && s.grace > s.maxHold/2:
		return nil, badField("MutexConfig.Grace", "%v is more than half of MaxHold, %v", s.grace, s.maxHold)
	case len(s.reason) > maxReason:
		return nil, badField("MutexConfig.Reason", "%d bytes; at most %d are allowed", len(s.reason), maxReason)
	}
	s.ttlMS = strconv.FormatInt(ceilMS(s.ttl), 10)
	s.setQuarantine(base)
	return s, nil
}

// ceilMS rounds up to whole milliseconds, the unit of the server's expiry.
func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
