package itest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// One reader comes before the last one goes, again and again, until a writer waits.
func TestCase36WriterAmongOverlappingReaders(t *testing.T) {
	eachAndElsewhere(t, func(t *testing.T, p place) {
		const reads = 20 * time.Millisecond
		rounds, client := 40, p.clients(t)
		if p.short {
			rounds = 12
		}
		var h history
		stop, stopped := make(chan struct{}), make(chan struct{})
		var beside atomic.Int64 // readers that came while another read
		var readers [2]taker
		for i := range readers {
			readers[i] = readerOf(client(), "job", nil)
		}
		first := tryLock(t, readers[0])
		go func() {
			defer close(stopped)
			overlap(t, &h, readers, first, reads, &beside, stop)
		}()

		writer := p.writer(client(), "job")
		var longest time.Duration
		enough := time.Now().Add(patience) // on a machine that has no time, readers seldom overlap
		for i := 0; i < rounds || beside.Load() < int64(rounds/4) && time.Now().Before(enough); i++ {
			span(rand.N(2 * reads)) // the moment is the case
			start := time.Now()
			w := lock(t, writer)
			longest = max(longest, counted(start, time.Now()))
			end := h.held("writer", w)
			span(time.Millisecond)
			end()
			release(t, w)
		}
		close(stop)
		receive(t, stopped, "end of the readers")
		t.Logf("longest wait of a writer %v; %d readers came while another read", longest, beside.Load())
		if longest > reads+factor*100*time.Millisecond {
			t.Errorf("a writer waited for %v, readers read for %v", longest, reads)
		}
		if beside.Load() < int64(rounds/4) {
			t.Error("the readers did not overlap, so this case shows nothing")
		}
		h.check(t)
		p.mustBeGone(t, readerKind)
	})
}

// overlap reads without a pause: who reads goes when the next one has come, or when
// it has read for so long and somebody keeps the next one out. It counts how often
// the next one came in time.
func overlap(t *testing.T, h *history, readers [2]taker, l *zamok.Lease, reads time.Duration, beside *atomic.Int64, stop <-chan struct{}) {
	for turn := 1; ; turn++ {
		end := h.note(hold{who: fmt.Sprint("reader ", turn), fence: l.Fence(), reads: true}, l)
		done := time.After(reads)
		span(reads / 4)
		next := goLock(t.Context(), readers[turn%2])
		var g got
		select {
		case g = <-next:
			beside.Add(1)
		case <-done:
		}
		end()
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("reader %d: %v", turn, err)
		}
		if g.at.IsZero() {
			g = <-next
		}
		if g.err != nil {
			t.Errorf("reader %d: %v", turn, g.err)
			return
		}
		l = g.lease
		select {
		case <-stop:
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// The same step by step: who is let in when.
func TestCase36LaterReadersWaitBehindTheWriter(t *testing.T) {
	eachAndElsewhere(t, func(t *testing.T, p place) {
		c := p.clients(t)
		ahead := []*zamok.Lease{tryLock(t, readerOf(c(), "job", nil)), tryLock(t, readerOf(c(), "job", nil))}
		writer := p.stand(t, p.writer(c(), "job"))
		later := []<-chan got{p.stand(t, readerOf(c(), "job", nil)), p.stand(t, readerOf(c(), "job", nil))}
		if _, err := c().RWMutex("job", nil).TryRLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("a reader passed the writer who waits: %v", err)
		}
		release(t, ahead[0])
		p.mustWait(t, "one reader of two has gone", writer, later[0], later[1])
		w := soon(t, "the writer", writer, func() { release(t, ahead[1]) })
		p.mustWait(t, "the writer has it", later...)
		var readers []*zamok.Lease
		start := time.Now()
		release(t, w)
		for i, r := range later {
			l := inTime(t, fmt.Sprint("reader ", i), r, start)
			if l.Fence() <= w.Fence() {
				t.Errorf("reader %d has fence %d after the writer's %d", i, l.Fence(), w.Fence())
			}
			readers = append(readers, l)
		}
		if w.Fence() <= max(ahead[0].Fence(), ahead[1].Fence()) {
			t.Errorf("the writer has fence %d after %d and %d", w.Fence(), ahead[0].Fence(), ahead[1].Fence())
		}
		for _, l := range readers {
			release(t, l)
		}
	})
}

func TestCase37WriterTurnsReader(t *testing.T) {
	eachAndElsewhere(t, func(t *testing.T, p place) {
		c := p.clients(t)
		w := tryLock(t, c().RWMutex("job", nil))
		next := []<-chan got{p.stand(t, readerOf(c(), "job", nil)), p.stand(t, readerOf(c(), "job", nil))}
		second := p.stand(t, p.writer(c(), "job"))
		behind := p.stand(t, readerOf(c(), "job", nil))

		start := time.Now()
		if err := w.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		readers := []*zamok.Lease{w}
		for i, r := range next {
			l := inTime(t, fmt.Sprint("reader ", i), r, start)
			if l.Fence() <= w.Fence() {
				t.Errorf("reader %d has fence %d, the writer had %d", i, l.Fence(), w.Fence())
			}
			readers = append(readers, l)
		}
		p.mustWait(t, "three read", second, behind)
		for _, l := range readers[1:] {
			release(t, l)
		}
		p.mustWait(t, "the first one still reads", second, behind)
		if err := w.Check(t.Context()); err != nil {
			t.Errorf("it is a reader now: %v", err)
		}
		w2 := soon(t, "the second writer", second, func() { release(t, w) })
		p.mustWait(t, "the second writer has it", behind)
		release(t, soon(t, "the reader behind it", behind, func() { release(t, w2) }))
		p.mustBeGone(t, readerKind)
	})
}

// The dead one's lease ends by itself, whether those who live go on or not.
func TestCase37KilledReader(t *testing.T) {
	t.Parallel()
	for _, goOn := range []bool{true, false} {
		t.Run(fmt.Sprintf("othersGoOn=%v", goOn), func(t *testing.T) {
			eachAndElsewhere(t, func(t *testing.T, p place) {
				c, s := p.clients(t), p.at(mutexKind.keyOf("job"))
				dead := p.start(t, 0, "holder", kindEnv+"="+readerKind.name)
				var token string
				var fence int64
				if _, err := fmt.Sscan(dead.expect("held"), &token, &fence); err != nil {
					t.Fatal(err)
				}
				living := tryLock(t, readerOf(c(), "job", nil))
				writer := p.stand(t, p.writer(c(), "job"))
				dead.kill()
				latest := s.now(t).Add(childTTL) // what it sent before that arrives before this
				list := readerKind.membersOf("job")
				ends := s.memberEnds(t, list, token)
				if ends.IsZero() || ends.After(latest) {
					t.Fatalf("the dead one's lease ends at %v, it is %v", ends, s.now(t))
				}
				if !goOn {
					release(t, living)
				}
				within(t, patience, "the dead one's lease is over", func() bool {
					if e := s.memberEnds(t, list, token); e.After(latest) {
						t.Fatalf("somebody renewed the lease of the dead one, to %v after %v", e, latest)
					}
					if len(writer) > 0 && s.now(t).Before(ends) {
						t.Fatal("a writer has it beside a reader whose lease has not ended")
					}
					return s.now(t).After(latest)
				})
				var w *zamok.Lease
				if goOn {
					p.mustWait(t, "one reads", writer)
					w = soon(t, "the writer", writer, func() { release(t, living) })
				} else {
					// It looks every 2 s: nobody is left who could tell it.
					g := receive(t, writer, "lock")
					if g.err != nil {
						t.Fatal(g.err)
					}
					t.Logf("the writer has it %v after the dead one's lease", g.at.Sub(ends))
					if took := g.at.Sub(ends); took < 0 || slow(ends, g.at, 2*time.Second) {
						t.Errorf("the writer has it %v after the dead one's lease", took)
					}
					w = g.lease
				}
				if w.Fence() <= max(fence, living.Fence()) {
					t.Errorf("fence %d after %d and %d", w.Fence(), fence, living.Fence())
				}
				release(t, w)
			})
		})
	}
}

// stand calls Lock in another goroutine and returns when it stands in the queue.
func (p place) stand(t *testing.T, m taker) <-chan got {
	t.Helper()
	before := p.waiting(t, "job")
	result := goLock(t.Context(), m)
	within(t, patience, "it waits", func() bool { return p.waiting(t, "job") == before+1 })
	return result
}

// mustWait fails the test unless all of them still stand in the queue, and nobody
// else.
func (p place) mustWait(t *testing.T, when string, results ...<-chan got) {
	t.Helper()
	if n := p.waiting(t, "job"); n != len(results) {
		t.Errorf("%s: %d wait, want %d", when, n, len(results))
	}
	for i, r := range results {
		if len(r) > 0 {
			t.Errorf("%s: waiter %d does not wait", when, i)
		}
	}
}

// soon does what lets a waiter in, and returns its lease.
func soon(t *testing.T, who string, result <-chan got, do func()) *zamok.Lease {
	t.Helper()
	start := time.Now()
	do()
	return inTime(t, who, result, start)
}

// inTime returns the lease of one who was let in by something that began at start.
func inTime(t *testing.T, who string, result <-chan got, start time.Time) *zamok.Lease {
	t.Helper()
	g := receive(t, result, "lock for "+who)
	if g.err != nil {
		t.Fatalf("%s: %v", who, g.err)
	}
	if took := g.at.Sub(start); slow(start, g.at, 100*time.Millisecond) {
		t.Errorf("%s has it after %v", who, took)
	}
	return g.lease
}
