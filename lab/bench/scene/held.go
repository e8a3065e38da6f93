package scene

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/process"
)

// playHeld watches for less than a TTL: it is about memory.
func playHeld(ctx context.Context, e *Env) error {
	return e.holdMany(ctx, e.count(8_000), 3*time.Second, 25*time.Second)
}

// playHeldMany watches for a TTL and a half, in which each lock is renewed four times. One
// that is not renewed in time is lost by then.
func playHeldMany(ctx context.Context, e *Env) error {
	return e.holdMany(ctx, e.count(100_000), 22500*time.Millisecond, 2*time.Minute)
}

// holdMany takes n locks, as many as it can within a limit, and watches them.
func (e *Env) holdMany(ctx context.Context, n int, watch, limit time.Duration) error {
	k, s := e.Kinds[0], e.server()
	c, err := k.Open(s.Addr(), locker.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	held := make([]locker.Held, n)
	first := n / 100 // connections are made
	start := time.Now()
	if _, err := takeAll(c, held, 0, first, limit); err != nil {
		return err
	}
	memory, goroutines := process.Memory(), runtime.NumGoroutine()
	taken, err := takeAll(c, held, first, n, limit)
	if err != nil {
		return err
	}
	e.add(k, "locks", float64(first+taken))
	e.add(k, "s to take", time.Since(start).Seconds())
	e.add(k, "goroutines", float64(runtime.NumGoroutine()-goroutines)/float64(taken))
	e.add(k, "bytes", (float64(process.Memory())-float64(memory))/float64(taken))

	mine, its, from := process.CPU(), serverCPU(s), time.Now()
	if err := wait(ctx, e.span(watch)); err != nil {
		return err
	}
	seconds := time.Since(from).Seconds()
	e.add(k, "% of a core", 100*(process.CPU()-mine).Seconds()/seconds)
	e.add(k, "server %", 100*(serverCPU(s)-its).Seconds()/seconds)
	lost := 0
	for _, h := range held {
		if h == nil {
			continue
		}
		select {
		case <-h.Lost():
			lost++
		default:
		}
	}
	e.add(k, "lost", float64(lost))
	return nil
}

// takeAll takes the locks from that one to that, until the limit.
func takeAll(c locker.Client, held []locker.Held, from, to int, limit time.Duration) (int, error) {
	const workers = 16 // as many connections as a pool on a small machine
	var all sync.WaitGroup
	var taken atomic.Int64
	var failed atomic.Pointer[error]
	till := time.Now().Add(limit)
	for w := range workers {
		all.Go(func() {
			for i := from + w; i < to && failed.Load() == nil && time.Now().Before(till); i += workers {
				h, err := c.Of(fmt.Sprint("job", i))(context.Background())
				if err != nil {
					failed.Store(&err)
					return
				}
				held[i] = h
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(taken.Load()), nil
}
