package model

import (
	"strconv"
	"strings"
)

// What one member of a quorum does. It decides nothing: the client counts.

// Vote takes the lock at one member when it is free there.
//
// Keys: lock, queue, fence, node. Arguments: token, ttl in ms, terms, the fence that is
// proposed (0: none). The reply:
// granted, held or quarantine; fence, ms left (of the quarantine), time, 0, 0, holder.
func (s *Store) Vote(keys, args []string) (any, error) {
	if len(keys) != 4 || len(args) != 4 {
		return nil, refuse("ERR vote takes 4 keys and 4 arguments")
	}
	s.Begin()
	token := args[0]
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	closed, odds, err := s.quarantine(keys[3:], args[2:3])
	switch {
	case odds != nil:
		return nil, odds
	case err != nil:
		return nil, err
	case closed > 0:
		s.hit(VoteQuarantine)
		return s.vote("quarantine", "0", closed, ""), nil
	}
	if !s.exists(keys[0]) {
		s.hit(VoteFree)
		from := s.us
		if proposed, _ := strconv.ParseInt(args[3], 10, 64); proposed > from && proposed < from+1_000_000 {
			s.hit(VoteProposed)
			from = proposed
		}
		value, fence, err := s.fenceFrom(keys[2], token, from)
		if err != nil {
			return nil, err
		}
		return s.vote("granted", fence, ttl, ""), s.setPX(keys[0], value, ttl)
	}
	value, _, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	left := s.PTTL(keys[0])
	switch {
	case !owns(value, token):
		s.hit(VoteHeld)
		return s.vote("held", "0", left, value), nil
	case broken(value, token):
		s.hit(VoteMineBroken)
	case left < ttl:
		s.hit(VoteMineRaised)
		s.PExpire(keys[0], ttl)
		left = ttl
	default:
		s.hit(VoteMineKept)
	}
	return s.vote("granted", fenceOrZero(value, token), left, ""), nil
}

func (s *Store) vote(status, fence string, left int64, holder string) any {
	return []any{status, fence, left, s.us, int64(0), int64(0), holder}
}

// Confirm writes the fence of a lease back to a member that voted for it, and takes
// its owner out of the queue there.
//
// Keys: lock, queue, fence. Arguments: token, fence, the last fence that is reserved
// with it, member ("": it has no entry in the queue). The reply: confirmed, absent or
// other; fence, ms left, 0, removed from the queue, 0, holder.
func (s *Store) Confirm(keys, args []string) (any, error) {
	if len(keys) != 3 || len(args) != 4 {
		return nil, refuse("ERR confirm takes 3 keys and 4 arguments")
	}
	s.Begin()
	token := args[0]
	value, held, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	text, _, err := s.Get(keys[2])
	if err != nil {
		s.hit(FenceWrongType)
		return nil, err
	}
	left := s.PTTL(keys[0])
	removed, err := s.dequeue(keys[1], args[3], ConfirmLeavesQueue)
	if err != nil {
		return nil, err
	}
	status, fence := "absent", "0"
	switch {
	case !held:
		s.hit(ConfirmAbsent)
	case !owns(value, token):
		s.hit(ConfirmOther)
		status = "other"
	default:
		last, ok := digits(text)
		if reserved, _ := digits(args[2]); !ok || last < reserved || last >= maxFence {
			s.hit(ConfirmCounter)
			s.put(keys[2], entry{kind: String, str: args[2]})
		} else {
			s.hit(ConfirmCounterAhead)
		}
		note := ""
		if at := strings.Index(value[len(token):], mark); at >= 0 {
			s.hit(ConfirmBroken)
			note = value[len(token)+at:]
		}
		s.setKeep(keys[0], token+":"+args[1]+note)
		status, fence, value = "confirmed", args[1], ""
	}
	if removed > 0 {
		if err := s.tellNext(names{lock: keys[0], queue: keys[1]}, msText(left)); err != nil {
			return nil, err
		}
	}
	return []any{status, fence, left, int64(0), removed, int64(0), value}, nil
}

// msText is how long a lock is taken, for a message to whoever waits: 1 ms at least.
func msText(left int64) string { return strconv.FormatInt(max(left, 1), 10) }

// Line joins the queue that one member keeps, which says who tries next.
//
// Keys: lock, queue. Arguments: token, ttl in ms, inbox ("-": waits and polls), ticket
// (0: none yet), mode. The reply: waits or free; 1 if it stood there already, ms left,
// time, position, ears, holder, ticket.
func (s *Store) Line(keys, args []string) (any, error) {
	if len(keys) != 2 || len(args) != 5 {
		return nil, refuse("ERR line takes 2 keys and 5 arguments")
	}
	s.Begin()
	ticket, err := strconv.ParseFloat(args[3], 64)
	if err != nil {
		return nil, refuse("ERR value is not an integer or out of range")
	}
	a := acquisition{Store: s, names: names{lock: keys[0], queue: keys[1]}, token: args[0], ttlText: args[1],
		inbox: args[2], ticket: ticket, mode: args[4]}
	value, held, tail, err := a.look()
	if err != nil {
		return nil, err
	}
	ears := a.enqueue(tail)
	if err := s.dropDead(a.queue, a.token); err != nil {
		return nil, err
	}
	status := "waits"
	if held {
		s.hit(LineWaits)
	} else {
		s.hit(LineFree)
		status = "free"
	}
	return []any{status, a.stoodText(), s.PTTL(a.lock), s.us, a.zrank(a.queue, a.member) + 1, ears, value, whole(a.ticket)}, nil
}

// Leave gives up what a token has at one member, the vote or a place in the queue, or
// tells the first who waits there to try.
//
// Keys: lock, queue. Arguments: token, member ("": it has none), tell ("1": tell the
// first who is still there). The reply: released, absent or other; fence, ms left, 0,
// removed from the queue, how many wait, holder.
func (s *Store) Leave(keys, args []string) (any, error) {
	if len(keys) != 2 || len(args) != 3 {
		return nil, refuse("ERR leave takes 2 keys and 3 arguments")
	}
	s.Begin()
	value, held, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	removed, err := s.dequeue(keys[1], args[1], LeaveQueue)
	if err != nil {
		return nil, err
	}
	all, err := s.ZRange(keys[1])
	if err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	waiting := int64(len(all))
	status, fence, left := "absent", "0", int64(-2)
	switch {
	case held && owns(value, args[0]):
		s.hit(LeaveReleased)
		status, fence, left = "released", fenceOrZero(value, args[0]), 0
		s.Del(keys[0])
		value = ""
	case held:
		s.hit(LeaveOther)
		status, left = "other", s.PTTL(keys[0])
	default:
		s.hit(LeaveAbsent)
	}
	if tell := args[2] == "1"; waiting > 0 && (tell || removed > 0) {
		ms := msText(left)
		if tell {
			s.hit(LeaveTells)
			w, to, err := s.nextHead(keys[1], noToken, "")
			if err != nil {
				return nil, err
			}
			if to == toOther && w.inbox != "-" {
				s.tell(w.inbox, "next", w.token, "0", keys[0])
			}
			ms = strconv.Itoa(headGrant)
		} else {
			s.hit(LeaveTellsFirst)
		}
		if err := s.tellNext(names{lock: keys[0], queue: keys[1]}, ms); err != nil {
			return nil, err
		}
	}
	return []any{status, fence, left, int64(0), removed, waiting, value}, nil
}

// dequeue takes an entry out of a queue, if it is there.
func (s *Store) dequeue(queue, member string, hit Branch) (removed int64, err error) {
	if member == "" {
		return 0, nil
	}
	ok, err := s.ZRem(queue, member)
	switch {
	case err != nil:
		s.hit(QueueWrongType)
	case ok:
		s.hit(hit)
		removed = 1
	}
	return removed, err
}

// dropDead takes off the queue those who stand before the first that is still there,
// or is me.
func (s *Store) dropDead(queue, me string) error {
	for range maxDead {
		all, err := s.ZRange(queue)
		if err != nil || len(all) == 0 {
			return err
		}
		if _, ok := s.living(all[0].Member, me); ok {
			return nil
		}
		s.hit(FrontDead)
		if _, _, err := s.zpopmin(queue); err != nil {
			return err
		}
	}
	return nil
}
