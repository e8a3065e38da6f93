package zamoktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// report is the code under test in these examples, as it would stand in a user's
// package: a hundred seconds of work that two processes must not do at once.
type report struct {
	locks *zamok.Client
	book  *book
}

const pages = 100

// Make writes the report. While another process does, it does nothing.
func (r *report) Make(ctx context.Context) error {
	err := r.locks.Mutex("report", nil).TryDo(ctx, r.write)
	if errors.Is(err, zamok.ErrHeld) {
		return nil
	}
	return err
}

// MakeInTurn writes the report after those who came before.
func (r *report) MakeInTurn(ctx context.Context) error {
	return r.locks.Mutex("report", nil).Do(ctx, r.write)
}

// write takes a second a page, and stops when ctx ends.
func (r *report) write(ctx context.Context) error {
	fence := zamok.LeaseFrom(ctx).Fence()
	for range pages {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.book.add(fence); err != nil {
			return err
		}
	}
	return nil
}

// book is what the lock protects: pages by the fences of their writers. It takes
// no page from a writer after one from a later writer.
type book struct {
	mu    sync.Mutex
	pages []int64
	stale int // pages that were refused
}

var errStale = errors.New("a later holder has written")

func (b *book) add(fence int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.pages); n > 0 && b.pages[n-1] > fence {
		b.stale++
		return errStale
	}
	b.pages = append(b.pages, fence)
	return nil
}

// len returns how many pages there are.
func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pages)
}

// start runs a job in another goroutine, so that the test can break things
// meanwhile.
func start(ctx context.Context, job func(context.Context) error) (done <-chan error) {
	ch := make(chan error, 1)
	go func() { ch <- job(ctx) }()
	return ch
}

// Nothing is broken yet: the work is done under the lock, and the lock is free
// afterwards. The hundred seconds are virtual and pass at once.
func TestReportIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)

		fence := server.AwaitHeld("report")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if job.book.len() != pages || job.book.pages[0] != fence {
			t.Errorf("%d pages, want %d, all with the fence of the lock", job.book.len(), pages)
		}
		if server.Held("report") {
			t.Error("the job left the lock behind")
		}
	})
}
