package model

import (
	"strconv"
	"strings"
)

// readMode is the mode of those who wait for the lock only to read.
const readMode = "r"

// marker begins the value of a lock that readers have; the last fence that one of
// them was given follows. No token begins so.
const marker = "z1-read:"

// maxAdmitted bounds what one call pays for readers, and for those who went away
// without a word.
const maxAdmitted = 1000

func reads(value string) bool { return strings.HasPrefix(value, marker) }

// admitted is what admit did.
type admitted struct {
	mine  string // the caller's fence, "" if it was not let in
	value string // the lock's value, if anybody was let in
	told  bool   // the next in the queue was told
	left  int64  // ms left of the lock
}

// admit lets readers in: first, when the caller has taken it off the queue already
// or is it itself, and all readers at the queue's head. anew says that the lock is
// not the readers' already; then there is a first. me is the caller's token, which
// gets its whole ttl (0: it does not come to read), or noToken.
func (s *Store) admit(k names, me string, ttl int64, anew bool, first *waiter) (a admitted, err error) {
	if anew {
		s.Del(k.readers)
	} else if ended, err := s.zremUpTo(k.readers, float64(s.ms)); err != nil {
		s.hit(ReadersWrongType)
		return a, err
	} else if ended > 0 {
		s.hit(ReadersEnded)
	}
	n, grants := 0, []grant(nil)
	for n < maxAdmitted {
		n++
		w := first
		if first = nil; w == nil {
			var over, dead bool
			if w, dead, over, err = s.nextReader(k, me); err != nil || over {
				break
			}
			if a.told = a.told || dead; dead {
				continue
			}
		}
		g, err := s.letIn(k, *w, me, ttl)
		if err != nil {
			return a, err
		}
		if a.value, a.told = marker+g.fence, true; w.token == me && ttl > 0 {
			a.mine = g.fence
		}
		if g.ms > 0 {
			grants = append(grants, g)
		}
	}
	if err != nil {
		return a, err
	}
	a.left = s.lastEnd(k.readers) - s.ms
	if !anew {
		a.left = max(a.left, s.PTTL(k.lock))
	}
	if err := s.settle(k, a, grants); err != nil {
		return a, err
	}
	switch {
	case k.closed > 0:
		a.told = true
		return a, s.holdBack(k, me)
	case !a.told:
		return a, nil
	case n == maxAdmitted:
		s.hit(AdmitMore)
		return a, s.tellNext(k, "1")
	}
	return a, s.tellNext(k, strconv.FormatInt(a.left, 10))
}

// grant is what a reader was given; ms is 0 when it had its share already.
type grant struct {
	to    waiter
	fence string
	ms    int64
}

// nextReader takes the first in the queue off it, if that is a reader or dead. over
// is true when a writer stands there, or nobody.
func (s *Store) nextReader(k names, me string) (w *waiter, dead, over bool, err error) {
	all, err := s.ZRange(k.queue)
	if err != nil {
		s.hit(QueueWrongType)
		return nil, false, false, err
	}
	if len(all) == 0 {
		s.hit(AdmitAll)
		return nil, false, true, nil
	}
	if k.closed > 0 {
		s.hit(AdmitClosed)
		return nil, false, true, nil
	}
	head, ok := s.living(all[0].Member, me)
	if ok && head.mode != readMode {
		s.hit(AdmitWriterWaits)
		return nil, false, true, nil
	}
	_, err = s.ZRem(k.queue, all[0].Member)
	return &head, !ok, false, err
}

// letIn makes the waiter a reader. One that is a reader already keeps what it has;
// the caller, who is the one that knows of its own share, has it raised.
func (s *Store) letIn(k names, w waiter, me string, ttl int64) (g grant, err error) {
	g.to, g.ms = w, w.grant()
	if w.token == me && ttl > 0 {
		g.to.inbox, g.ms = "-", ttl // it reads the reply
	}
	if _, g.fence, err = s.nextFence(k.fence, ""); err != nil {
		return g, err
	}
	end, had, err := s.permit(k.readers, w.token)
	switch {
	case err != nil:
		return g, err
	case had && w.token == me:
		s.hit(AdmitMeAgain)
		end = max(end, s.ms+g.ms)
		g.ms = 0
	case had:
		s.hit(AdmitHasShare)
		g.ms = 0
	default:
		s.hit(AdmitReader)
		end = s.ms + g.ms
	}
	return g, s.zput(k.readers, w.token, float64(end))
}

// settle writes what admit decided, and tells those who were let in.
func (s *Store) settle(k names, a admitted, grants []grant) error {
	if a.value != "" {
		if err := s.setPX(k.lock, a.value, a.left); err != nil {
			return err
		}
		s.PExpire(k.readers, a.left)
	}
	for _, g := range grants {
		s.tellGrant(k.lock, g.to, g.fence, g.ms)
	}
	return nil
}

// lastEnd is when the last of the members ends, in ms of the server's clock; 0 if
// there is none. The type has been checked.
func (s *Store) lastEnd(key string) int64 {
	all, _ := s.ZRange(key)
	if len(all) == 0 {
		return 0
	}
	return int64(all[len(all)-1].Score)
}

// readersNow returns the readers whose leases have not ended.
func (s *Store) readersNow(key string) ([]Scored, error) {
	all, err := s.ZRange(key)
	if err != nil {
		s.hit(ReadersWrongType)
		return nil, err
	}
	for len(all) > 0 && all[0].Score <= float64(s.ms) {
		all = all[1:]
	}
	return all, nil
}
