package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// life is a process, and what it reads.
type life struct {
	*os.Process
	in io.Closer
}

// crew are the worker processes. One that dies is started again under another name,
// until they are told to stop.
type crew struct {
	dir string
	// command is a worker's, and what it is to read first; what it reads ends when it
	// is to stop.
	command func(worker int, proc string) (cmd *exec.Cmd, plan []byte)

	mu       sync.Mutex
	names    []string // by worker: of the process that lives
	running  map[string]life
	stopping bool
	failed   error // of the first that ended otherwise than killed or asked to
	lives    sync.WaitGroup
}

func startCrew(dir string, workers int, command func(worker int, proc string) (*exec.Cmd, []byte)) (*crew, error) {
	c := &crew{dir: dir, command: command, names: make([]string, workers), running: make(map[string]life)}
	for i := range workers {
		if err := c.start(i, 1); err != nil {
			return c, err
		}
	}
	return c, nil
}

// start begins the n-th life of a worker.
func (c *crew) start(worker, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return nil
	}
	proc := fmt.Sprintf("worker-%d-%d", worker, n)
	said, err := os.Create(filepath.Join(c.dir, proc+".stderr"))
	if err != nil {
		return err
	}
	cmd, plan := c.command(worker, proc)
	cmd.Stdout, cmd.Stderr = said, said
	// It ends with the thread that starts it, also when it stands still then.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe() // which Wait closes
	if err != nil {
		said.Close()
		return err
	}
	started := make(chan error)
	c.lives.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer said.Close()
		err := cmd.Start()
		if started <- err; err == nil {
			c.ended(cmd.Wait(), worker, n, proc)
		}
	})
	if err := <-started; err != nil {
		return err
	}
	if _, err := in.Write(append(plan, '\n')); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		return err // one that has ended already is told of by ended
	}
	c.names[worker], c.running[proc] = proc, life{cmd.Process, in}
	return nil
}

// ended is called when a process is gone.
func (c *crew) ended(err error, worker, n int, proc string) {
	c.mu.Lock()
	delete(c.running, proc)
	if asked := c.stopping && err == nil; !asked && !killed(err) {
		c.fail(fmt.Errorf("%s ended: %v; see %s.stderr", proc, err, filepath.Join(c.dir, proc)))
	}
	again := c.failed == nil
	c.mu.Unlock()
	if again {
		if err := c.start(worker, n+1); err != nil {
			c.mu.Lock()
			c.fail(err)
			c.mu.Unlock()
		}
	}
}

// fail keeps the first failure. The caller has mu.
func (c *crew) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Len, Proc and Signal are those of faults.Workers.
func (c *crew) Len() int { return len(c.names) }

// Proc is the name of the process that lives.
func (c *crew) Proc(worker int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[worker]
}

// Signal sends a signal to a process.
func (c *crew) Signal(proc string, s syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.running[proc]
	return ok && p.Signal(s) == nil
}

// stop tells all to end, by the end of what they read, and waits for them. One that does not end is a failure: its
// goroutines are in its file.
func (c *crew) stop(limit time.Duration) error {
	c.mu.Lock()
	c.stopping = true
	for _, p := range c.running {
		_ = p.in.Close()
	}
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() { c.lives.Wait(); close(ended) }()
	var hung error
	for _, s := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		select {
		case <-ended:
		case <-time.After(limit):
			hung = fmt.Errorf("workers did not end within %v", limit)
			c.all(s)
		}
	}
	<-ended
	if hung != nil {
		return hung
	}
	return c.failed
}

func (c *crew) all(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.running {
		_ = p.Signal(s)
	}
}
