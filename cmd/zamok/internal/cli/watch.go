package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// shot is the list at one moment.
type shot struct {
	at    time.Time
	locks []inspect.Lock
	notes []string
}

func (f *lsFlags) shoot(ctx context.Context, in *inspect.Inspector) (*shot, error) {
	view, err := f.look(ctx, in)
	if err != nil {
		return nil, err
	}
	s := &shot{}
	for l, err := range f.locks(ctx, view) {
		if err != nil {
			return nil, err
		}
		s.locks = append(s.locks, l)
	}
	s.at, s.notes = time.Now(), f.notes(view, len(s.locks))
	return s, nil
}

// watch lists again and again: on a terminal in its place, elsewhere one list
// after the other.
func (a *app) watch(ctx context.Context, f *lsFlags, in *inspect.Inspector) error {
	first, err := f.shoot(ctx, in) // what is wrong from the beginning is an error as of ls
	if err != nil {
		return err
	}
	if f.asJSON || !isTerminal(a.stdout) || os.Getenv("TERM") == "dumb" {
		return a.watchBlocks(ctx, f, in, first)
	}
	return a.watchScreen(ctx, f, in, first)
}

func (a *app) watchBlocks(ctx context.Context, f *lsFlags, in *inspect.Inspector, s *shot) error {
	down := outage{talk: a.talk}
	pause := time.NewTicker(time.Duration(f.every))
	defer pause.Stop()
	for {
		if s != nil {
			if err := a.block(f, s); err != nil {
				return err
			}
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ended(ctx)
		}
		var err error
		if s, err = f.shoot(ctx, in); ctx.Err() == nil {
			if err = down.judge(err); err != nil {
				return err
			}
		}
	}
}

func (a *app) block(f *lsFlags, s *shot) error {
	if f.asJSON {
		list := []jsonLock{}
		for _, l := range s.locks {
			list = append(list, jsonOf(l))
		}
		return a.jsonLine(list)
	}
	return a.print(func(w io.Writer) {
		fmt.Fprintln(w, s.at.Format("15:04:05")+"  "+s.summary())
		if len(s.locks) > 0 {
			(&lister{page: a.pageWidth()}).write(w, s.locks)
		}
		fmt.Fprintln(w)
	})
}

func (s *shot) summary() string {
	waiting := 0
	for _, l := range s.locks {
		waiting += l.Waiting
	}
	return fmt.Sprintf("%s, %d waiting", counted(len(s.locks), "lock"), waiting)
}

// errQuit is the cause of a context that the user ended with q.
var errQuit = errors.New("quit")

// watcher draws the list on a terminal.
type watcher struct {
	a       *app
	f       *lsFlags
	in      *inspect.Inspector
	screen  *screen
	keys    *keyboard
	resized <-chan os.Signal

	shot    *shot
	trouble string    // why there is no newer list
	due     time.Time // for the next
}

// watchScreen draws on the terminal until q or Ctrl-C.
func (a *app) watchScreen(ctx context.Context, f *lsFlags, in *inspect.Inspector, first *shot) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &watcher{a: a, f: f, in: in, screen: newScreen(a.stdin, a.stdout), shot: first}
	if err := w.screen.open(); err != nil {
		return a.written(err)
	}
	defer w.screen.close()
	w.keys = readKeys(a.stdin, func(key byte) {
		switch key {
		case 'q', 'Q':
			end(errQuit)
		case ctrlC:
			end(&interrupted{syscall.SIGINT})
		}
	})
	defer w.keys.stop()
	var ignore func()
	w.resized, ignore = resizes()
	defer ignore()
	if err := w.run(ctx); !errors.Is(err, errQuit) {
		return err
	}
	return nil
}

func (w *watcher) run(ctx context.Context) error {
	w.rest()
	for {
		columns, height := size(w.a.stdout)
		if err := w.screen.draw(w.f.picture(w.shot, w.trouble, columns, height)); err != nil {
			return w.a.written(err)
		}
		again, err := w.pause(ctx)
		if err == nil && again {
			err = w.refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// rest counts from the answer, so that a slow server is not asked more often.
func (w *watcher) rest() { w.due = time.Now().Add(time.Duration(w.f.every)) }

// pause waits until there is a reason to draw: again says whether to ask the
// server first.
func (w *watcher) pause(ctx context.Context) (again bool, err error) {
	timer := time.NewTimer(time.Until(w.due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-w.resized:
		return false, nil
	case key := <-w.keys.pressed:
		if key == ctrlZ {
			return false, w.screen.suspend()
		}
		return true, nil
	case <-ctx.Done():
		return false, ended(ctx)
	}
}

// refresh asks the server. While it does not answer, the last list stays, and the
// trouble stands above it. An error that it returns will not pass by itself.
func (w *watcher) refresh(ctx context.Context) error {
	fresh, err := w.f.shoot(ctx, w.in)
	w.rest()
	switch {
	case err == nil:
		w.shot, w.trouble = fresh, ""
	case ctx.Err() != nil: // pause says why
	case explain(err).code == exit.Denied:
		return err
	default:
		w.trouble = "no answer since " + w.shot.at.Format("15:04:05") + ": " + w.a.talk.clean(plain(err))
	}
	return nil
}

// picture is what to draw: no more lines than there are, and none longer.
func (f *lsFlags) picture(s *shot, trouble string, columns, height int) []string {
	head := fmt.Sprintf("%s  %s, every %s, q ends", s.at.Format("15:04:05"), s.summary(), ago(time.Duration(f.every)))
	lines := []string{shorten(head, columns)}
	for _, note := range append([]string{trouble}, s.notes...) {
		if note != "" {
			lines = append(lines, shorten(note, columns))
		}
	}
	shown := s.locks
	if room := height - len(lines) - 1; len(shown) > room { // one is for the headings
		shown = shown[:max(0, min(len(shown), room-1))]
	}
	if len(s.locks) > 0 {
		lines = append(lines, (&lister{page: columns}).lines(shown)...)
	}
	if more := len(s.locks) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines[:min(len(lines), height)]
}
