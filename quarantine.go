package zamok

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

const (
	minQuarantine = time.Second

	// closedHolder stands in a reply where the holder would: nobody is granted
	// anything, though nobody may hold it. No token begins so.
	closedHolder = "z1-quarantine"

	// oneServer is the list of members that a deployment of one server has.
	oneServer = "-"
)

// QuarantineError says that nobody may be granted a lock for now, whether anybody holds
// it or not, because the server was restarted, failed over or wiped, or is new, and may lack a
// lease (Config.Quarantine). errors.Is(err, ErrUnavailable) holds, and never ErrHeld.
// From TryLock and TryDo at once, also from Resume; from Lock and Do when
// MutexConfig.Wait or ctx ended meanwhile. Nothing is left on the server, or it is taken
// away within moments.
type QuarantineError struct {
	Name   string        // of the lock
	Left   time.Duration // until it ends, when the server was last asked
	Waited time.Duration // how long this call waited
	Err    error         // why waiting ended: ctx's error, the last failure of a request, or nil
}

func (e *QuarantineError) Error() string {
	text := fmt.Sprintf("zamok: lock %q not acquired: %s", e.Name, quarantineText(e.Left))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is ErrUnavailable.
func (e *QuarantineError) Is(target error) bool { return target == ErrUnavailable }

func (e *QuarantineError) Unwrap() error { return e.Err }

func quarantineText(left time.Duration) string {
	return fmt.Sprintf("quarantine, nobody is granted anything for %v: the server was restarted, failed over or wiped, or is new", roundForPeople(left))
}

// refused is the error that a call returns which did not get what it asked for.
func (e *HeldError) refused() error {
	if e.Quarantine {
		return &QuarantineError{Name: e.Name, Left: e.TTL, Waited: e.Waited, Err: e.Err}
	}
	return e
}

// terms are what the scripts need to know of a quarantine.
type terms struct {
	node string // the key by which it is known
	text string // and what this client knows of it
}

// setQuarantine notes what the scripts need to know that may grant somebody
// something.
func (s *spec) setQuarantine(base *Config) {
	if base.Quarantine > 0 {
		s.terms = &terms{keys.Node(base.Prefix), strconv.FormatInt(ceilMS(base.Quarantine), 10) + " " + oneServer}
	}
}

// deciding makes the call one of a script that may grant somebody something: with
// quarantine it must know about that.
func (s *spec) deciding(call driver.Call) driver.Call {
	if s.terms != nil {
		n := len(call.Keys)
		call.Keys, call.Args = append(call.Keys[:n:n], s.terms.node), append(call.Args, s.terms.text)
	}
	return call
}

// closed notes that the server is in quarantine for so long, and says so once.
func (c *Client) closed(left time.Duration) {
	now := c.clock.now()
	end := now.add(left)
	if before := instant(c.closedUntil.Swap(int64(end))); before == 0 || now > before {
		c.cfg.Logger.Warn("zamok: quarantine, nobody is granted anything: the server was restarted, failed over or wiped, or is new",
			slog.Duration("left", left.Round(time.Millisecond)))
	}
}

// closedSince says whether there was a quarantine after that time of the server, in µs,
// and yes when that cannot be told.
func (c *Client) closedSince(node string, then int64) bool {
	ans, err := c.eval(c.backgroundCtx, driver.Call{Script: lua.Stamp, Keys: []string{node}, Args: []string{""}, Limit: callLimit})
	stamp := strings.Fields(ans.holder) // RUN_ID UNTIL_MS MAXTTL_MS MEMBERS
	if err != nil || len(stamp) < 2 {
		return true
	}
	until, err := strconv.ParseInt(stamp[1], 10, 64)
	return err != nil || until*1000 > then
}

// checkTTL says what is wrong with the time for which a lease is wanted.
func (c *Config) checkTTL(field string, ttl time.Duration) error {
	if err := checkTTL(field, ttl); err != nil {
		return err
	}
	if c.Quarantine > 0 && ttl > c.Quarantine {
		return badField(field, "%v is more than Config.Quarantine, %v, which must be the longest of all", ttl, c.Quarantine)
	}
	return nil
}

// checkQuarantine says what is wrong with Config.Quarantine on this driver. In a
// cluster each slot would need a key of its own, which would put the slot into
// quarantine at its first use and at each of its moves.
func checkQuarantine(d driver.Driver, quarantine time.Duration) error {
	switch cluster, ok := d.(interface{ Clustered() bool }); {
	case quarantine == 0:
		return nil
	case quarantine < minQuarantine || quarantine > maxTTL:
		return badField("Config.Quarantine", "%v; it must be %v to %v", quarantine, minQuarantine, maxTTL)
	case ok && cluster.Clustered():
		return badField("Config.Quarantine", "a cluster has none, since each of its slots would be in quarantine at its first use and whenever it is moved; have the primaries wait for their replicas (min-replicas-to-write) and check fences")
	}
	return nil
}

// believed is what counts of what the server says is left of a lease: no more than a
// quarantine lasts, though the server may keep it longer, when its clock was set back
// or somebody without a quarantine had raised it.
func (c *Config) believed(left time.Duration) time.Duration {
	if c.Quarantine > 0 {
		return min(left, c.Quarantine)
	}
	return left
}
