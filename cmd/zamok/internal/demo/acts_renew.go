package demo

import (
	"errors"

	"github.com/zamok-go/zamok"
)

// longJob: a job of three TTLs, and a rival that tries all the time.
func longJob(s *scene) verdict {
	cast, err := s.cast("job", "rival")
	if err != nil {
		return failed("%v", err)
	}
	job, rival := cast[0], cast[1]
	lease, err := job.mutex.Lock(s.ctx)
	if err != nil {
		return failed("%v", err)
	}
	job.say("has the lock for %v and works for three times as long", s.ttl)
	const looks = 9
	for range looks {
		s.pause(s.ttl / 3)
		other, err := rival.mutex.TryLock(s.ctx)
		switch {
		case err == nil:
			rival.say("has the lock, fence %d", other.Fence())
			return failed("the rival got the lock while the job was at work")
		case !errors.Is(err, zamok.ErrHeld):
			return failed("rival: %v", plainly(err))
		}
	}
	rival.say("tried %d times in vain", looks)
	if err := lease.Check(s.ctx); err != nil {
		return failed("the job lost its lock: %v", plainly(err))
	}
	n := len(job.renewals)
	job.say("is done; its lease was renewed %d times", n)
	if n < 2 {
		return failed("the lease outlived its TTL with %d renewals: it cannot have", n)
	}
	if err := lease.Release(s.ctx); err != nil {
		return failed("release: %v", plainly(err))
	}
	other, err := rival.mutex.TryLock(s.ctx)
	if err != nil {
		return failed("after the release the rival was refused: %v", plainly(err))
	}
	rival.say("has the lock, fence %d", other.Fence())
	return ok("held for three TTLs, renewed %d times, free right after the release", n)
}
