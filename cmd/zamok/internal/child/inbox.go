//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"bufio"
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// inbox is the keeper's end of the pipe from zamok. Nobody but the keeper's own
// loop reads it, so that the loop can have all that lies in the pipe before it
// acts: a reader beside it might, on a busy machine, have an order in hand that
// it has had no time to pass on.
type inbox struct {
	fd    int
	lines *bufio.Reader
	some  <-chan struct{} // there is something to take, or the end; now and then once too often
}

// openInbox starts a goroutine that only waits. It ends when quit is closed, or
// with the process, whose end that is.
func openInbox(in *os.File, quit <-chan struct{}) *inbox {
	some := make(chan struct{})
	b := &inbox{fd: int(in.Fd()), lines: bufio.NewReader(in), some: some}
	go func() {
		for ready(b.fd, unix.POLLIN, -1) {
			select {
			case some <- struct{}{}:
			case <-quit:
				return
			}
		}
	}()
	return b
}

// take returns the orders that lie in the pipe, and waits for none: an order is
// written in one piece. At the pipe's end err is not nil, also when something
// in it was garbled, which is as good as no pipe: fail to the safe side.
func (b *inbox) take() (orders []order, err error) {
	for b.lines.Buffered() > 0 || ready(b.fd, unix.POLLIN, 0) {
		line, err := b.lines.ReadBytes('\n')
		if err != nil {
			return orders, err
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return orders, err
		}
		orders = append(orders, o)
	}
	return orders, nil
}
