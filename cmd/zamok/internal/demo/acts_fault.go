package demo

import (
	"context"
	"errors"
	"time"

	"github.com/zamok-go/zamok"
)

// duo is an owner that has the lock and a rival that waits for it.
type duo struct {
	owner, rival *actor
	lease        *zamok.Lease
	asked        time.Time // when the owner asked for the lock
	queue        <-chan got
}

func (s *scene) duo() (*duo, error) {
	cast, err := s.cast("owner", "rival")
	if err != nil {
		return nil, err
	}
	d := &duo{owner: cast[0], rival: cast[1], asked: time.Now()}
	if d.lease, err = d.owner.mutex.Lock(s.ctx); err != nil {
		return nil, err
	}
	d.owner.say("has the lock, fence %d", d.lease.Fence())
	d.queue, err = d.rival.lockBehind()
	return d, err
}

// slack is how much later than the TTL the rival may have the lock.
func (s *scene) slack() time.Duration { return s.ttl/2 + time.Second }

// crash: an owner that vanishes costs the next in line one TTL, no less and not
// much more.
func crash(s *scene) verdict {
	d, err := s.duo()
	if err != nil {
		return failed("%v", err)
	}
	d.owner.wire.cut()
	d.owner.say("crashes")
	g, intime := d.await(s, s.ttl+s.slack())
	if !intime {
		return failed("%s after the grant the lock had not come back", short(time.Since(d.asked)))
	}
	if g.err != nil {
		return failed("rival: %v", g.err)
	}
	after := g.at.Sub(d.asked)
	d.rival.say("has the lock %s after the owner got it, fence %d", short(after), g.lease.Fence())
	switch {
	case after < s.ttl-s.ttl/20:
		return failed("it came back after %s, before its TTL of %v: the owner might have been alive", short(after), s.ttl)
	case g.lease.Fence() <= d.lease.Fence():
		return failed("the fence did not grow")
	}
	return ok("the lock came back %s after the grant, its TTL is %v", short(after), s.ttl)
}

// await waits for the rival to have the lock, within so long after the grant.
func (d *duo) await(s *scene, within time.Duration) (got, bool) {
	timer := time.NewTimer(time.Until(d.asked.Add(within)))
	defer timer.Stop()
	select {
	case g := <-d.queue:
		return g, true
	case <-timer.C:
		return got{}, false
	case <-s.ctx.Done():
		return got{err: context.Cause(s.ctx)}, true
	}
}

// staleRelease: the release was sent in time, and arrives when the lock is
// another's.
func staleRelease(s *scene) verdict {
	d, err := s.duo()
	if err != nil {
		return failed("%v", err)
	}
	d.owner.wire.delay()
	d.owner.say("releases the lock, but its packet is held up in the network")
	go func() { _ = d.lease.Release(s.ctx) }()
	g, intime := d.await(s, s.ttl+s.slack())
	if !intime || g.err != nil {
		return failed("the rival did not get the lock: %v", g.err)
	}
	d.rival.say("has the lock, since its TTL ended, fence %d", g.lease.Fence())
	n := d.owner.wire.deliver()
	d.owner.say("its release arrives at last (%d late packets)", n)
	if n == 0 {
		return failed("nothing was held up: the act shows nothing")
	}
	if err := g.lease.Check(s.ctx); err != nil {
		return failed("the late release took the lock from the rival: %v", plainly(err))
	}
	d.rival.say("asks the server: still its own")
	return ok("the late release changed nothing: its token is not the holder's")
}

// The account that the guarded writes are about. Each has its twin for the
// server in memory, see Twins.
const (
	writeScript = "demo-write"
	readScript  = "demo-read"
)

func scripts() (write, read *zamok.Script) {
	return zamok.NewScript(writeScript, `redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. FENCE, 'PX', 60000) return 'written'`),
		zamok.NewScript(readScript, `return redis.call('GET', KEYS[1])`)
}

// pausedOwner: the owner is stopped, say by its garbage collector or its host,
// with a write under way.
func pausedOwner(s *scene) verdict {
	d, err := s.duo()
	if err != nil {
		return failed("%v", err)
	}
	write, read := scripts()
	account := []string{s.config.Prefix + "demo:account"}
	d.owner.wire.delay()
	late := make(chan error, 1)
	go func() {
		_, err := d.lease.Run(s.ctx, write, account, "owner")
		late <- err
	}()
	d.owner.say("sends a write and is paused; the write is held up, too")
	g, intime := d.await(s, s.ttl+s.slack())
	if !intime || g.err != nil {
		return failed("the rival did not get the lock: %v", g.err)
	}
	told := d.lease.Err()
	d.rival.say("has the lock, fence %d", g.lease.Fence())
	if _, err := g.lease.Run(s.ctx, write, account, "rival"); err != nil {
		return failed("rival's write: %v", plainly(err))
	}
	d.rival.say("writes")
	d.owner.wire.deliver()
	d.owner.say("goes on: its write arrives now")
	<-late
	value, err := g.lease.Run(s.ctx, read, account)
	if err != nil {
		return failed("rival's look: %v", plainly(err))
	}
	d.rival.say("reads %q", value)
	_, again := d.lease.Run(s.ctx, write, account, "owner")
	return judgePaused(d, g, told, again, value)
}

func judgePaused(d *duo, g got, told, again error, value any) verdict {
	text, _ := value.(string)
	switch {
	case !errors.Is(told, zamok.ErrLost):
		return failed("the owner still believed in its lease when the rival had the lock")
	case len(text) < 5 || text[:5] != "rival":
		return failed("the owner's late write was applied: the account has %q", text)
	case !errors.Is(again, zamok.ErrLost):
		return failed("a new write of the owner was not refused: %v", again)
	case d.lease.Fence() >= g.lease.Fence():
		return failed("the owner's fence %d is not smaller than the rival's %d", d.lease.Fence(), g.lease.Fence())
	}
	d.owner.say("knows: %v", plainly(told))
	return ok("told before the rival began; late and new writes refused; a smaller fence")
}
