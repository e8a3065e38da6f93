package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zamok-go/zamok/lab/fault/deploy"
)

// apart is Play in a process of its own, as two campaigns at a time need: servers with a
// clock of theirs are made by the environment of the process that starts them.
func apart(ctx context.Context, p Plan, dir string, say io.Writer) (*Result, error) {
	file := filepath.Join(dir, fmt.Sprintf("result-%d.json", p.Seed))
	defer os.Remove(file)
	cmd := exec.CommandContext(ctx, os.Args[0], append(p.args(), "-dir", dir, "-result", file)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	cmd.Stderr = say
	ended := cmd.Run()
	text, err := os.ReadFile(file)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist) && ended == nil:
		return nil, deploy.ErrNotHere
	case err != nil:
		return nil, errors.Join(ended, err)
	}
	res := new(Result)
	if err := json.Unmarshal(text, res); err != nil {
		return nil, err
	}
	if res.OK() && ended != nil { // it said why
		res.Trouble = fmt.Errorf("its process: %w", ended)
	}
	return res, nil
}

// write writes a result for apart.
func (r *Result) write(file string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
