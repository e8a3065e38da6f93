package wake

import (
	"sync"
	"time"
)

// idleAfter is how long an inbox that nobody uses stays subscribed: who waits for a
// lock of its slot soon comes again.
const idleAfter = time.Minute

// Inboxes are those of one client, by channel. One server needs one; in a cluster,
// where only the primary of a slot tells who listens there, each slot in which the
// client waits has its own, until a minute after the last has gone.
type Inboxes struct {
	cfg Config

	mu     sync.Mutex
	of     map[string]*counted
	closed bool
	idle   sync.WaitGroup // inboxes that are being closed since nobody uses them
}

// counted is an inbox and how many use it.
type counted struct {
	*Inbox

	users int
	timer *time.Timer // closes it; nil before the first time that nobody used it
}

// NewInboxes makes none yet. cfg is of each, but for the channel.
func NewInboxes(cfg Config) *Inboxes {
	return &Inboxes{cfg: cfg, of: make(map[string]*counted)}
}

// Up says whether the subscription to that channel is confirmed at this moment.
func (s *Inboxes) Up(channel string) bool {
	s.mu.Lock()
	c := s.of[channel]
	s.mu.Unlock()
	return c != nil && c.Inbox.Up()
}

// Take returns the inbox of that channel, which stays until it is given back. After
// Close it is one that is closed.
func (s *Inboxes) Take(channel string) *Inbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[channel]
	if c == nil {
		cfg := s.cfg
		cfg.Channel = channel
		c = &counted{Inbox: New(cfg)}
		c.closed = s.closed
		s.of[channel] = c
	}
	c.users++
	return c.Inbox
}

// Give gives back what Take returned.
func (s *Inboxes) Give(b *Inbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[b.cfg.Channel]
	if c.users--; c.users > 0 || s.closed {
		return
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(idleAfter, func() { s.retire(b) })
	} else {
		c.timer.Reset(idleAfter)
	}
}

// retire closes an inbox that nobody has used for so long, in the timer's own
// goroutine. It may have been taken again, and then stays: it comes with the next
// Give.
func (s *Inboxes) retire(b *Inbox) {
	s.mu.Lock()
	c := s.of[b.cfg.Channel] // nil when the timer was set again after it had fired
	if s.closed || c == nil || c.Inbox != b || c.users > 0 {
		s.mu.Unlock()
		return
	}
	delete(s.of, b.cfg.Channel)
	b.retire()
	s.idle.Add(1)
	s.mu.Unlock()
	defer s.idle.Done()
	b.Close()
}

// Close ends all subscriptions and waits until nothing of them runs.
func (s *Inboxes) Close() {
	s.mu.Lock()
	s.closed = true
	all := make([]*counted, 0, len(s.of))
	for _, c := range s.of {
		all = append(all, c)
	}
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range all {
		if c.timer != nil {
			c.timer.Stop()
		}
		closing.Go(c.Inbox.Close)
	}
	closing.Wait()
	s.idle.Wait()
}
