package model

import (
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/driver"
)

// verdict is to whom a lock that nobody holds went.
type verdict int

const (
	toNobody verdict = iota // the queue is used up
	toMe                    // the caller is first, and takes the lock itself
	toOther                 // somebody else has it now
	more                    // too many dead waiters for one call
	closed                  // it is quarantine: nobody may have it
)

// noToken is for a caller that does not wait: no token has a NUL.
const noToken = "\x00"

// maxDead bounds what one call pays for those who went away without a word.
const maxDead = 1000

// What is granted to the head of the queue, in ms. It is short because the head
// may be frozen; its first renewal raises it to the ttl that it asked for.
const (
	headGrant   = 2000
	pollerGrant = 1000
)

type given struct {
	to    verdict
	value string // with toOther: the lock's value, and the ms granted; with closed what stands for it, and for how long
	ms    int64
	mine  string // the caller's fence, when it is one of the readers let in
}

// names are the keys of a lock.
type names struct {
	lock, queue, fence, readers string
	closed                      int64 // ms of quarantine, in which nobody may be granted it
}

func namesOf(keys []string) names {
	return names{lock: keys[0], queue: keys[1], fence: keys[2], readers: keys[3]}
}

// handOver gives the lock, which nobody holds, to the first in the queue who is
// still there, and when that is a reader to all readers behind it. me is the
// caller's token, or noToken; head is the first, if the caller has popped it
// already, or ""; ttl is what the caller gets as a reader, 0 if it is none.
func (s *Store) handOver(k names, me, head string, ttl int64) (given, error) {
	if k.closed > 0 {
		s.hit(HandOverClosed)
		return given{to: closed, value: closedHolder, ms: k.closed}, s.holdBack(k, me)
	}
	w, to, err := s.nextHead(k.queue, me, head)
	if err != nil || to != toOther {
		return given{to: to}, err
	}
	if w.mode == readMode {
		s.hit(HandOverReaders)
		a, err := s.admit(k, me, ttl, true, &w)
		return given{to: toOther, value: a.value, ms: a.left, mine: a.mine}, err
	}
	value, fence, err := s.nextFence(k.fence, w.token)
	if err != nil {
		return given{}, err
	}
	s.reserve(k.fence, w.mode, fence)
	ms := w.grant()
	if err := s.setPX(k.lock, value, ms); err != nil {
		return given{}, err
	}
	s.tellGrant(k.lock, w, fence, ms)
	if err := s.tellNext(k, strconv.FormatInt(ms, 10)); err != nil {
		return given{}, err
	}
	return given{to: toOther, value: value, ms: ms}, nil
}

// nextHead takes the first who is still there off the queue.
//
// Whether somebody is there is asked before anything is published: a message to
// an inbox that counts no ears could still arrive, over a pattern or another
// node, and would then promise a lock to one that was dropped.
func (s *Store) nextHead(queue, me, head string) (w waiter, to verdict, err error) {
	for range maxDead {
		if head == "" {
			var ok bool
			if head, ok, err = s.zpopmin(queue); err != nil {
				s.hit(QueueWrongType)
				return waiter{}, toNobody, err
			} else if !ok {
				s.hit(HandOverNobody)
				return waiter{}, toNobody, nil
			}
		}
		w, ok := s.living(head, me)
		head = ""
		switch {
		case !ok:
		case w.token == me:
			s.hit(HandOverMe)
			return w, toMe, nil
		default:
			s.countHead(w)
			return w, toOther, nil
		}
	}
	s.hit(HandOverMore)
	return waiter{}, more, nil
}

// holdBack is for a quarantine, in which nobody is taken off the queue but the dead
// before the first who is still there: it would have to wait for each of them
// afterwards. That one is told when the quarantine ends, unless it is the caller.
func (s *Store) holdBack(k names, me string) error {
	for range maxDead {
		all, err := s.ZRange(k.queue)
		if err != nil || len(all) == 0 {
			break // tellNext sees it too
		}
		if w, ok := s.living(all[0].Member, me); ok && w.token == me {
			s.hit(HeldBackMe)
			return nil
		} else if ok {
			s.hit(HeldBack)
			break
		}
		_, _ = s.ZRem(k.queue, all[0].Member) // its type was checked
	}
	return s.tellNext(k, strconv.FormatInt(k.closed, 10))
}

// living takes an entry of a queue apart, if its waiter is still there or is the
// caller.
func (s *Store) living(member, me string) (w waiter, ok bool) {
	w, ok = parseWaiter(member)
	switch {
	case !ok:
		s.hit(HandOverGarbage)
	case w.token != me && w.inbox != "-" && s.env.Listeners(w.inbox) == 0:
		s.hit(HandOverDead)
		ok = false
	}
	return w, ok
}

// countHead counts what kind of waiter is served.
func (s *Store) countHead(w waiter) {
	most := int64(headGrant)
	if w.inbox == "-" {
		s.hit(HandOverPoller)
		most = pollerGrant
	} else {
		s.hit(HandOverListener)
	}
	if w.ttl > most {
		s.hit(HandOverCapped)
	} else {
		s.hit(HandOverShort)
	}
}

// tellNext tells the first who goes on waiting that it is the first now, and for
// how many ms the lock is taken: who is far behind asks seldom, and must not
// when it has moved up behind a holder that dies.
func (s *Store) tellNext(k names, ms string) error {
	all, err := s.ZRange(k.queue)
	if err != nil {
		s.hit(QueueWrongType)
		return err
	}
	if len(all) == 0 {
		s.hit(NextNobody)
		return nil
	}
	w, ok := parseWaiter(all[0].Member)
	if !ok || w.inbox == "-" || w.inbox == "" {
		s.hit(NextUntold)
		return nil
	}
	s.hit(NextTold)
	s.tell(w.inbox, "next", w.token, ms, k.lock)
	return nil
}

// tell sends words to an inbox.
func (s *Store) tell(inbox string, words ...string) {
	publish := s.env.Publish
	if driver.Sharded(inbox) {
		s.hit(ToldInSlot)
		publish = s.env.SPublish
	}
	publish(inbox, strings.Join(words, " "))
}

// tellGrant tells the waiter that it holds. The words of a grant: who, with which
// fence, when by the server's clock, for how long, and which lock (last, as it may
// contain spaces).
func (s *Store) tellGrant(lock string, w waiter, fence string, ms int64) {
	if w.inbox == "-" {
		return
	}
	s.tell(w.inbox, "grant", w.token, fence, strconv.FormatInt(s.us, 10), strconv.FormatInt(ms, 10), lock)
}

// waiter is a member of a queue, MODE|TOKEN|TTL|INBOX.
type waiter struct {
	mode, token string
	ttl         int64
	inbox       string
}

func parseWaiter(member string) (waiter, bool) {
	mode, rest, ok1 := strings.Cut(member, "|")
	token, rest, ok2 := strings.Cut(rest, "|")
	ttl, inbox, ok3 := strings.Cut(rest, "|")
	ms, ok4 := digits(ttl)
	return waiter{mode, token, ms, inbox}, ok1 && ok2 && ok3 && ok4
}

// grant is for how long the waiter, served by somebody else, gets the lock, in ms.
func (w waiter) grant() int64 {
	if w.inbox == "-" {
		return max(1, min(w.ttl, pollerGrant))
	}
	return max(1, min(w.ttl, headGrant))
}
