package itest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/zamok-go/zamok"
)

const (
	boardEnv = "ZAMOK_ITEST_BOARD" // the file that the processes share
	whoEnv   = "ZAMOK_ITEST_WHO"   // which of them one is, from 1
	longEnv  = "ZAMOK_ITEST_LONG"  // for how long
)

// board is memory that several processes share. What is not atomic is guarded by the
// lock that is tested.
type board struct {
	holders atomic.Int64
	wrong   atomic.Int64 // how often two had the lock, or a fence did not grow
	fence   int64
	who     int64      // who had the lock last
	since   int64      // when it came to that process, in ns
	procs   [3]balance // by who
}

// balance is how a process fared.
type balance struct {
	taken   int64 // acquisitions
	turns   int64 // times that the lock came from another process
	longest int64 // turn of its own, in ns
}

func openBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(board{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(&memory[0])), nil
}

// held notes that one of that process has the lock.
func (b *board) held(who, fence int64) {
	if b.holders.Add(1) != 1 || fence <= b.fence {
		b.wrong.Add(1)
	}
	if now := time.Now().UnixNano(); b.who != who {
		if b.who != 0 {
			last := &b.procs[b.who]
			last.longest = max(last.longest, now-b.since)
		}
		b.procs[who].turns++
		b.who, b.since = who, now
	}
	b.fence = fence
	b.procs[who].taken++
}

func (b *board) leaves() { b.holders.Add(-1) }

// TestProcessesOfManyGoroutinesShareALock: each passes it on among its own, and to the
// other when its turn is over.
func TestProcessesOfManyGoroutinesShareALock(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		path := filepath.Join(t.TempDir(), "board")
		b, err := openBoard(path)
		if err != nil {
			t.Fatal(err)
		}
		long := duration(t, "ZAMOK_ITEST_LINE", 4*time.Second)
		var all []*process
		for who := 1; who <= 2; who++ {
			all = append(all, start(t, lib, s.URL(), "line", boardEnv+"="+path, whoEnv+"="+strconv.Itoa(who), longEnv+"="+long.String()))
		}
		for _, p := range all {
			p.expectLine("ready")
		}
		for _, p := range all {
			p.say("go")
		}
		for _, p := range all {
			<-p.exited
			if p.err != nil {
				t.Error(p.err)
			}
		}
		if n := b.wrong.Load(); n > 0 {
			t.Errorf("%d times two had the lock, or a fence did not grow", n)
		}
		for who := 1; who <= 2; who++ {
			p := b.procs[who]
			t.Logf("process %d: %d acquisitions, %d turns, the longest %v", who, p.taken, p.turns, time.Duration(p.longest))
			if p.turns < 10 || p.taken < 2*p.turns {
				t.Errorf("that is no turn for each, or nothing was passed on")
			}
		}
		if s.has(t, "lock:job") || s.has(t, queue("job")) {
			t.Error("something is left")
		}
	})
}

// line is 16 goroutines that take the lock as often as they can.
func line(c *zamok.Client) error {
	b, err := openBoard(os.Getenv(boardEnv))
	who, err1 := strconv.ParseInt(os.Getenv(whoEnv), 10, 64)
	long, err2 := time.ParseDuration(os.Getenv(longEnv))
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	// Long enough for a machine that stops a process for seconds.
	m := c.Mutex("job", &zamok.MutexConfig{TTL: time.Minute})
	fmt.Println("ready")
	if _, err := fmt.Scanln(new(string)); err != nil {
		return err
	}
	ctx, end := context.Background(), time.Now().Add(long)
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				var l *zamok.Lease
				if l, errs[i] = m.Lock(ctx); errs[i] == nil {
					b.held(who, l.Fence())
					b.leaves()
					errs[i] = l.Release(ctx)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, c.Close())...)
}
