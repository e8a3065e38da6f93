package cli

import (
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// The keys that a terminal in raw mode passes on instead of a signal.
const (
	ctrlC = 3
	ctrlZ = 26
)

// screen is a terminal on which a picture is drawn in its place. It uses the
// second screen, so that what the terminal showed is there again afterwards.
type screen struct {
	in, out *os.File
	before  *term.State // nil when the keyboard is no terminal
}

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the second screen, no cursor, long lines are cut
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

func newScreen(in, out *os.File) *screen { return &screen{in: in, out: out} }

func (s *screen) open() error {
	if isTerminal(s.in) {
		before, err := term.MakeRaw(int(s.in.Fd()))
		if err == nil {
			s.before = before
		}
	}
	_, err := s.out.WriteString(enter)
	return err
}

// close puts the terminal back. It may be called twice.
func (s *screen) close() {
	_, _ = s.out.WriteString(leave)
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before)
		s.before = nil
	}
}

// draw writes over what is there, in one piece and without clearing first, so
// that nothing flickers.
func (s *screen) draw(lines []string) error {
	picture := "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
	_, err := s.out.WriteString(picture)
	return err
}

// suspend does what Ctrl-Z does, and draws on a fresh screen when it goes on.
func (s *screen) suspend() error {
	s.close()
	stopSelf()
	return s.open()
}

// keyboard reads keys until it is stopped.
type keyboard struct {
	pressed    chan byte // those that nobody took are dropped
	quit, done chan struct{}
}

// readKeys calls seen at once for every key, also while the server is being asked.
func readKeys(in *os.File, seen func(key byte)) *keyboard {
	k := &keyboard{pressed: make(chan byte, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		if isTerminal(in) {
			k.read(in, seen)
		}
	}()
	return k
}

func (k *keyboard) read(in *os.File, seen func(key byte)) {
	var b [1]byte
	for {
		select {
		case <-k.quit:
			return
		default:
		}
		if !readable(in, 50*time.Millisecond) {
			continue
		}
		if n, err := in.Read(b[:]); err != nil || n == 0 {
			return // the terminal is gone
		}
		seen(b[0])
		select {
		case k.pressed <- b[0]:
		default:
		}
	}
}

func (k *keyboard) stop() {
	close(k.quit)
	<-k.done
}
