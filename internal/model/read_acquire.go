package model

// ReadAcquire takes a lock together with others who only read, or joins the queue
// of those who wait for it.
//
// Keys: lock, queue, fence, readers, and with quarantine node. Arguments: token, ttl
// in ms, inbox, ticket (0: none yet), mode, and with quarantine terms. The reply: as of acquire; granted to one that has its share
// already, the ears are the ms since it was handed over.
func (s *Store) ReadAcquire(keys, args []string) (any, error) {
	a, err := s.acquisition("read_acquire", keys, args)
	if err != nil {
		return nil, err
	}
	if a.closed == 0 && !s.exists(a.lock) && !s.exists(a.queue) && !s.exists(a.readers) {
		s.hit(ReadAcquireFree)
		return a.readAlone()
	}
	value, held, tail, err := a.look()
	if err != nil {
		return nil, err
	}
	if !held || !reads(value) {
		return a.readLater(value, held, tail)
	}
	end, _, err := s.permit(a.readers, a.token)
	if err != nil {
		s.hit(ReadersWrongType)
		return nil, err
	}
	if end > s.ms {
		return a.readAgain(end)
	}
	if a.closed == 0 && !s.exists(a.queue) {
		s.hit(ReadAcquireJoins)
		return a.readNow(false)
	}
	return a.readBehind(value, tail)
}

// readAlone is read_acquire when there is nothing: neither lock, queue nor readers.
func (a *acquisition) readAlone() (any, error) {
	_, fence, err := a.nextFence(a.fence, "")
	if err != nil {
		return nil, err
	}
	if err := a.setPX(a.lock, marker+fence, a.ttl); err != nil {
		return nil, err
	}
	_ = a.zput(a.readers, a.token, float64(a.ms+a.ttl)) // it is new
	a.PExpire(a.readers, a.ttl)
	return a.readGranted(fence), nil
}

func (a *acquisition) readGranted(fence string) any {
	return []any{"granted", fence, a.ttl, a.us, a.stood, int64(0), "", "0"}
}

// readNow lets the caller in, and the readers at the queue's head.
func (a *acquisition) readNow(anew bool) (any, error) {
	in, err := a.admit(a.names, a.token, a.ttl, anew, &waiter{token: a.token})
	if err != nil {
		return nil, err
	}
	return a.readGranted(in.mine), nil
}

// readAgain answers one that has its share already: a reply was lost, or it was let
// in by another's call. What is left is raised to the ttl, and never shortened.
func (a *acquisition) readAgain(end int64) (any, error) {
	a.hit(ReadAcquireMine)
	in, err := a.admit(a.names, a.token, a.ttl, false, &waiter{token: a.token})
	if err != nil {
		return nil, err
	}
	age := max(0, a.ms-end+min(a.ttl, headGrant))
	return []any{"granted", in.mine, max(end-a.ms, a.ttl), a.us, int64(grantedBefore), age, "", "0"}, nil
}

// readBehind is read_acquire when readers have the lock and somebody queues for it.
func (a *acquisition) readBehind(value string, tail float64) (any, error) {
	ears := a.enqueue(tail)
	if a.closed > 0 {
		a.hit(ReadAcquireClosed)
		if err := a.holdBack(a.names, a.token); err != nil {
			return nil, err
		}
		return a.refused(closedHolder, a.closed, ears)
	}
	a.stood *= 2
	in, err := a.admit(a.names, a.token, a.ttl, false, nil)
	switch {
	case err != nil:
		return nil, err
	case in.mine != "":
		a.hit(ReadAcquireFirst)
		return a.readGranted(in.mine), nil
	}
	return a.readBeside(value, in.left, ears)
}

// readBeside is for one that was not let in with others, who now read. Whoever only
// tries is not in the queue, and joins them when nobody is any more.
func (a *acquisition) readBeside(value string, left, ears int64) (any, error) {
	if !a.exists(a.queue) {
		a.hit(ReadAcquireBehindNobody)
		return a.readNow(false)
	}
	a.hit(ReadAcquireWaits)
	return a.refused(value, left, ears)
}

// readLater is read_acquire when no reader has the lock.
func (a *acquisition) readLater(value string, held bool, tail float64) (any, error) {
	ears := a.enqueue(tail)
	if held {
		a.hit(ReadAcquireHeldByOther)
		return a.refused(value, a.PTTL(a.lock), ears)
	}
	g, err := a.handOver(a.names, a.token, "", a.ttl)
	switch {
	case err != nil:
		return nil, err
	case g.to == more:
		a.hit(ReadAcquireAgain)
		return a.goOn(), nil
	case g.mine != "":
		a.hit(ReadAcquireWithOthers)
		return a.readGranted(g.mine), nil
	case g.to == toOther && reads(g.value):
		a.hit(ReadAcquireGaveToReaders)
		return a.readBeside(g.value, g.ms, ears)
	case g.to == toOther, g.to == closed:
		a.hit(ReadAcquireGaveToOther)
		return a.refused(g.value, g.ms, ears)
	}
	a.hit(ReadAcquireAnew)
	return a.readNow(true)
}
