//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// never stands for a moment or a duration that does not come. It is far from
// overflow, so that sums with it stay large.
const never = time.Duration(math.MaxInt64 / 4)

// later is from + d, where never stays never.
func later(from, d time.Duration) time.Duration {
	if d >= never {
		return never
	}
	return from + d
}

// order is what zamok tells the keeper, one JSON object a line, each far shorter
// than PIPE_BUF so that it arrives whole. Every order carries the whole state:
// the latest one is all that a keeper needs, and a new keeper gets it unchanged.
type order struct {
	Seq     uint64 `json:"seq"`
	Group   int    `json:"group"`   // process group to kill
	Session int    `json:"session"` // the session it was started in
	Mark    string `json:"mark"`    // mark in the environment of its processes

	// Durations, never times of day. Stamp says when they began to count, on the
	// clock of bootNow, which all processes of a machine share: an order that
	// was delayed in zamok (SIGSTOP between computing and writing) or in the pipe
	// must not make the lease longer.
	Stamp  time.Duration `json:"stamp"`
	TermIn time.Duration `json:"term"` // TERM then; never: it was sent already, or must not be
	KillIn time.Duration `json:"kill"`

	Done bool `json:"done,omitempty"` // the group has ended: touch nobody, exit
}

// note is what the keeper tells zamok.
type note struct {
	Kind string `json:"kind"`
	Seq  uint64 `json:"seq,omitempty"` // of the order that noteOK confirms
}

const (
	noteReady = "ready" // signals are ignored, the pipe is read
	noteOK    = "ok"    // order Seq is in force
	noteMute  = "mute"  // zamok was silent for too long: the command is about to be stopped
	noteBye   = "bye"   // after Done: nothing will be killed any more
)

// receive decodes notes from r until it ends, and then closes the channel. The
// channel is abandoned when quit is closed.
func receive(r io.Reader, quit <-chan struct{}) <-chan note {
	ch := make(chan note)
	go func() {
		defer close(ch)
		for d := json.NewDecoder(r); ; {
			var n note
			if d.Decode(&n) != nil {
				return // a garbled pipe is as good as none: fail to the safe side
			}
			select {
			case ch <- n:
			case <-quit:
				return
			}
		}
	}()
	return ch
}

// send writes v to a pipe, and gives up when it is full for limit. What there is
// room for is written however late that is: a deadline alone would be over, with
// nothing tried, for a process that was stopped or starved after setting it.
func send(pipe *os.File, v any, limit time.Duration) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n') // one write, so that lines never mix
	conn, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	done := false
	var failed error
	err = conn.Control(func(fd uintptr) {
		if done = ready(int(fd), unix.POLLOUT, 0); done {
			_, failed = unix.Write(int(fd), b)
		}
	})
	if err != nil || done && !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR) {
		return errors.Join(err, failed)
	}
	_ = pipe.SetWriteDeadline(time.Now().Add(limit))
	_, err = pipe.Write(b)
	return err
}

// ready waits, for at most timeout ms (-1: without limit), until an event of fd
// has come, or it has no more to come.
func ready(fd int, event int16, timeout int) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: event}}
		n, err := unix.Poll(fds, timeout)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil
		}
	}
}
