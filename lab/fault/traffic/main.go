package traffic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Main is a worker process. The first line of in is its Plan; it prints "ready" when it
// begins, and goes on until in ends, so that it does not outlive who started it, or
// until it gets SIGTERM. It returns the exit code.
func Main(in io.Reader, out, errout io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	redis.SetLogger(silent{})
	err := work(ctx, in, func() { fmt.Fprintln(out, "ready") })
	if err != nil {
		fmt.Fprintln(errout, "worker:", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, in io.Reader, ready func()) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no plan: %w", err)
	}
	p, err := ReadPlan(bytes.NewReader(line))
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with the process
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	if err := Run(ctx, p, ready); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// silent has no log: go-redis prints every dial that fails.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
