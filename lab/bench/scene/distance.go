package scene

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zamok-go/zamok/lab/bench/locker"
)

// link is a longer way to a server: what goes over it, in each direction, arrives half a
// round trip later. The proxy of drivertest delays requests alone, by the whole of it; a
// message that comes by itself is not late there.
type link struct {
	listener net.Listener
	to       string
	half     time.Duration
}

func startLink(to string, roundTrip time.Duration) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{listener: l, to: to, half: roundTrip / 2}
	go k.accept() // until close
	return k, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// close lets no more in. What is open ends with the client or the server.
func (l *link) close() { _ = l.listener.Close() }

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go l.carry(client, server)
		go l.carry(server, client)
	}
}

type parcel struct {
	bytes []byte
	due   time.Time
}

// carry ends when either side closes, and closes both.
func (l *link) carry(from, to net.Conn) {
	under := make(chan parcel, 1024)
	timer, err := newExactTimer()
	if err != nil {
		_, _ = from.Close(), to.Close()
		return
	}
	go func() {
		defer to.Close()
		defer timer.Close()
		for p := range under {
			timer.until(p.due)
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close() // then nothing more comes
			}
		}
	}()
	defer close(under)
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if n > 0 {
			under <- parcel{buf[:n], time.Now().Add(l.half)}
		}
		if err != nil {
			return
		}
	}
}

// exactTimer is exact to some 50 µs. Timers of Go are so to a millisecond in a process that
// has nothing else to do, as that is what it asks of the kernel then; and a goroutine that
// sleeps in a system call keeps others from running on its processor for a while.
type exactTimer struct{ *os.File }

func newExactTimer() (exactTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return exactTimer{}, err
	}
	return exactTimer{os.NewFile(uintptr(fd), "timer")}, nil
}

// until waits until then, or not at all if the timer cannot.
func (t exactTimer) until(due time.Time) {
	d := time.Until(due)
	if d <= 0 {
		return
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	raw, err := t.SyscallConn() // Fd would take it from the poller
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &at, nil) })
	if err == nil {
		_, _ = t.Read(make([]byte, 8)) // how often it expired
	}
}

// playDistance has two parts, since a round trip costs a cycle twice and a hand-over once:
// half of it for the release to arrive, and half for the next one to be told.
func playDistance(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	l, err := startLink(s.Addr(), time.Duration(e.X)*time.Millisecond)
	if err != nil {
		return err
	}
	defer l.close()
	r, err := newRunner(k, l.addr(), locker.Options{}, 1, "own")
	if err != nil {
		return err
	}
	defer r.client.Close()
	if err := takeTurns(ctx, s, []*runner{r}, e.count(5), e.span(150*time.Millisecond)); err != nil {
		return err
	}
	e.add(k, "ms", millis(r.time()))
	takes, done, err := clientsOf(k, l.addr(), "job", 4, plain)
	if err != nil {
		return err
	}
	defer done()
	t, _, took, err := newCrowd(takes, 5*time.Millisecond, 1).during(ctx, s, e.span(500*time.Millisecond), e.span(2*time.Second))
	if err != nil {
		return err
	}
	e.add(k, "p50 ms", millis(quantile(t.passes, 0.50)))
	e.add(k, "p99 ms", millis(quantile(t.passes, 0.99)))
	e.add(k, "acquisitions/s", float64(t.acquired())/took.Seconds())
	return nil
}
