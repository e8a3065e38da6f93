package memory

import (
	"errors"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Fault is what happens to one call. The zero value: nothing.
type Fault struct {
	// DropRequest: the script does not run, and nobody answers, so the call ends
	// by its limit.
	DropRequest bool
	// DropReply: the script runs, and nobody answers.
	DropReply bool
	// Delay is added to the request's way. If the caller has given up by then the
	// script runs all the same: a delayed request.
	Delay time.Duration
	// DelayReply is added to the reply's way.
	DelayReply time.Duration
	// Err: the call ends with this error, at the moment at which it would have
	// been answered. The script does not run; with DropReply it does, as when the
	// connection is cut before the reply.
	Err error
}

// MessageFault is what happens to one message on its way to one subscription.
type MessageFault struct {
	Drop  bool
	Delay time.Duration // also of all that come behind it, as they share a connection
}

// faults is the part of a Server that breaks it. mu of Server guards it.
type faults struct {
	latency   time.Duration
	down      error
	hung      bool
	hangTimer *time.Timer
	held      []*flight // sent, and not run because of Hang
	cut       error     // no subscriptions because of Break
	refused   error     // none because of RefuseSubscribe
	intercept func(driver.Call) Fault
	onMessage func(channel, payload string) MessageFault
}

// calm says that calls take no time and nothing happens to them.
func (f *faults) calm() bool {
	return f.latency == 0 && !f.hung && f.down == nil && f.intercept == nil
}

// Latency sets how long a request, a reply and a message are on their way. It
// is 0 at first.
func (s *Server) Latency(oneWay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = oneWay
}

// Intercept has f called for every call of a script before it is sent, to say
// what happens to it; nil ends that. f may call methods of the Server.
func (s *Server) Intercept(f func(call driver.Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

func (s *Server) hook() func(driver.Call) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.intercept
}

// InterceptMessage has f called for every message and each subscription that it
// goes to; nil ends that. f must not call methods of the Server.
func (s *Server) InterceptMessage(f func(channel, payload string) MessageFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onMessage = f
}

// pingLimit is how long a subscription of a hung server lives: a driver pings
// every 10 s and waits as long for the answer.
const pingLimit = 20 * time.Second

var errPing = errors.New("memory: the server did not answer a PING")

// Hang stops the server, as SIGSTOP does: what is sent is not answered and does
// not run until Unhang. Callers give up by their limits. After 20 s
// subscriptions break.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung {
		return
	}
	s.hung = true
	s.hangTimer = time.AfterFunc(pingLimit, s.pingFailed)
}

func (s *Server) pingFailed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung {
		s.breakAll(errPing)
	}
}

// Unhang lets the server go on. It first runs all that was sent meanwhile, in
// order, also for callers that gave up: their requests stood in the socket.
// Then subscriptions that broke are made again.
func (s *Server) Unhang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hung {
		return
	}
	s.hung = false
	s.hangTimer.Stop()
	held := s.held
	s.held = nil
	for _, f := range held {
		s.execute(f)
	}
	s.reconnect()
}

// Down makes every call fail at once with err, or an error of its own if err is
// nil, and breaks the subscriptions, as when the server is gone. What was sent
// and has not run is lost. The keys stay.
func (s *Server) Down(err error) {
	if err == nil {
		err = errors.New("memory: connection refused")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
	s.dropHeld(err)
	s.breakAll(err)
}

// Up ends Down. Subscriptions are made again at once.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
	s.reconnect()
}

func (s *Server) dropHeld(err error) {
	held := s.held
	s.held = nil
	for _, f := range held {
		f.finish(nil, err)
	}
}

// Break breaks all subscriptions, and only these. None can be made until
// Reconnect. Messages on their way are lost.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = errors.New("memory: connection reset by peer")
	s.breakAll(s.cut)
}

// Reconnect ends Break: subscriptions are made again at once.
func (s *Server) Reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = nil
	s.reconnect()
}

// RefuseSubscribe makes the server refuse new subscriptions with NOPERM, until
// AllowSubscribe. Those that there are stay.
func (s *Server) RefuseSubscribe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = &driver.ServerError{Text: "NOPERM this user has no permissions to access one of the channels used as arguments"}
}

// AllowSubscribe ends RefuseSubscribe.
func (s *Server) AllowSubscribe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
	s.reconnect()
}
