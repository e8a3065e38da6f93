package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// terminal is both ends of one.
type terminal struct {
	master, slave *os.File

	mu    sync.Mutex
	shown strings.Builder
	done  chan struct{}
}

func newTerminal(t *testing.T, columns, lines uint16) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{master: master, slave: slave, done: make(chan struct{})}
	p.resize(t, columns, lines)
	go p.read()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-p.done
	})
	return p
}

func (p *terminal) read() {
	defer close(p.done)
	for b := make([]byte, 4096); ; {
		n, err := p.master.Read(b)
		p.mu.Lock()
		p.shown.Write(b[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

func (p *terminal) resize(t *testing.T, columns, lines uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		t.Fatal(err)
	}
}

func (p *terminal) mode(t *testing.T) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

// On a terminal the list is drawn in its place, follows the size and the locks,
// and goes away without a trace, by q, by Ctrl-C, and when the program is told to
// end, also while the server does not answer.
func TestWatchOnTerminal(t *testing.T) {
	server := drivertest.StartServer(t)
	client := clientOf(t, server, nil)
	holdMany(t, client, 30)
	until(t, "the process has named all", func() bool { return strings.HasPrefix(runOn(t, server, "check").out, "ZAMOK OK - 30 locks held") })
	t.Setenv("TERM", "xterm")
	for _, c := range []struct {
		end  string
		hang bool
		code int
	}{{"q", false, 0}, {"\x03", false, 130}, {"", false, 130}, {"q", true, 0}} {
		watchOnce(t, server, c.end, c.hang, c.code)
	}
}

func watchOnce(t *testing.T, server *drivertest.Server, end string, hang bool, code int) {
	t.Helper()
	p := newTerminal(t, 70, 12)
	before := p.mode(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a := newApp(p.slave, p.slave, p.slave)
	a.defaultURL = server.URL()
	ended := make(chan int)
	go func() { ended <- a.run(ctx, []string{"ls", "--watch=0.2", "--sort=age"}) }()

	until(t, "it is drawn", func() bool { return strings.Contains(p.text(), "… and 21 more") })
	if during := p.mode(t); during == before || !strings.HasPrefix(p.text(), enter) {
		t.Error("it is drawn on the first screen, or keys need a return")
	}
	p.resize(t, 70, 20)
	until(t, "it has the new size", func() bool { return strings.Contains(p.text(), "… and 13 more") })
	if hang {
		server.Pause()
		defer server.Resume()
		until(t, "the outage is shown", func() bool { return strings.Contains(p.text(), "no answer since") })
	}
	if end == "" {
		cancel(&interrupted{unix.SIGINT})
	} else if _, err := p.master.WriteString(end); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-ended:
		if got != code {
			t.Errorf("end by %q: exit code %d, want %d", end, got, code)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end by %q", end)
	}
	until(t, "the first screen is back", func() bool { return strings.HasSuffix(p.text(), leave) })
	if p.mode(t) != before {
		t.Error("the terminal is not as it was")
	}
	if lines := strings.Split(p.text(), "\x1b[H")[1:]; strings.Count(lines[0], "\r\n") != 11 || strings.Contains(lines[0], "\x1b[2J") {
		t.Errorf("the first picture is not of 12 lines, or is cleared first: %q", lines[0])
	}
}
