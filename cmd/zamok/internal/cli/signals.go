package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// surviveClosedPipe keeps a message to a closed stderr from ending zamok while
// it holds a lock. It is Notify and not Ignore, since what is ignored would be
// ignored in the command, too.
func surviveClosedPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ sig syscall.Signal }

func (i *interrupted) Error() string { return fmt.Sprintf("%v (signal %d)", i.sig, int(i.sig)) }

// code is what a shell would show for a program that the signal ended.
func (i *interrupted) code() int { return exit.Signal(int(i.sig)) }

// signalWatch turns the signals that end a program into the end of a context.
// While zamok waits, that is the context of waiting. Once the command runs, child
// takes the signals and the command decides; the watch goes on, so that in
// between no signal meets nobody and ends zamok with the lock held.
type signalWatch struct {
	waiting, running context.Context //nolint:containedctx // it is what makes and ends them
	endWaiting       context.CancelCauseFunc
	endRunning       context.CancelCauseFunc
	signals          chan os.Signal
	quit, done       chan struct{}

	mu       sync.Mutex
	handedAt time.Time
}

// between is how long after handOver a signal may come that child did not see,
// since it was about to listen. One that both saw does no harm.
const between = 20 * time.Millisecond

// watchSignals leaves those alone that were ignored at start.
func watchSignals(ctx context.Context, ignored []os.Signal) *signalWatch {
	w := &signalWatch{signals: make(chan os.Signal, 4), quit: make(chan struct{}), done: make(chan struct{})}
	w.waiting, w.endWaiting = context.WithCancelCause(ctx)
	w.running, w.endRunning = context.WithCancelCause(ctx)
	var wanted []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !slices.Contains(ignored, s) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) > 0 { // Notify without signals would mean all
		signal.Notify(w.signals, wanted...)
	}
	go w.watch()
	return w
}

func (w *signalWatch) watch() {
	defer close(w.done)
	for {
		select {
		case s := <-w.signals:
			w.came(&interrupted{s.(syscall.Signal)})
		case <-w.quit:
			return
		}
	}
}

func (w *signalWatch) came(i *interrupted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.handedAt.IsZero():
		w.endWaiting(i)
	case time.Since(w.handedAt) < between:
		w.endRunning(i)
	}
}

// handOver leaves signals to the command from now on. It returns why waiting
// ended if a signal came before. The context of waiting does not end any more:
// a lease's context is made of it.
func (w *signalWatch) handOver() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handedAt = time.Now()
	return context.Cause(w.waiting)
}

func (w *signalWatch) stop() {
	signal.Stop(w.signals)
	close(w.quit)
	<-w.done
	w.endWaiting(nil)
	w.endRunning(nil)
}
