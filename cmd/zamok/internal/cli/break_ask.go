package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// choose says whose leases are to be broken. Of several somebody must be named: by
// the number that the list on the screen gives it, when there is a terminal.
func (a *app) choose(ctx context.Context, f *breakFlags, l inspect.Lock) ([]inspect.Holder, error) {
	switch at := slices.IndexFunc(l.Holders, f.isToken); {
	case f.token != "" && at >= 0:
		return l.Holders[at : at+1], nil
	case f.all, l.Holding == 1:
		return l.Holders, nil
	case f.yes, f.dryRun, !a.atTerminal():
		return nil, usage("give --token with the token of one of them, which zamok show --json prints, or --all", "%q has %d holders, and it is not said which is to stop", visible(l.Title()), l.Holding)
	}
	typed, err := a.ask(ctx, "type the number of the holder that is to stop: ")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(typed)
	if err != nil || n < 1 || n > len(l.Holders) {
		return nil, &failure{code: exit.Usage, err: fmt.Errorf("%q is not the number of one of the holders: nothing was changed", typed), hint: "it stands in the column NO; for all of them there is --all"}
	}
	return l.Holders[n-1 : n], nil
}

// confirm has the user type the name of the lock: that takes a look at what is on
// the screen, which a y does not.
func (a *app) confirm(ctx context.Context, l inspect.Lock, warning string) error {
	typed, err := a.ask(ctx, a.talk.clean(strings.ReplaceAll(warning, "\n", " "))+"\nzamok: type the name of the lock to go on: ")
	name := visible(l.Title())
	switch {
	case err != nil:
		return err
	case typed == l.Title() || typed == name:
		return nil
	}
	return &failure{code: exit.Usage, err: fmt.Errorf("%q is not the name of the lock: nothing was changed", typed), hint: "type " + name + ", to show that you mean it"}
}

// ask reads a line that is the answer to a question. It writes by itself and not by
// talk, because the question must be there before the answer is read. Nothing typed is
// an error.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	if _, err := a.stderr.WriteString("zamok: " + question); err != nil {
		return "", a.written(err)
	}
	typed, err := readLine(ctx, a.stdin)
	if err != nil {
		_, _ = a.stderr.WriteString("\n") // the cursor stands behind the question
	}
	var stopped *interrupted
	switch {
	case errors.As(err, &stopped):
		return "", &failure{code: stopped.code(), err: fmt.Errorf("nothing was changed: %w", stopped)}
	case typed == "":
		return "", &failure{code: exit.Usage, err: errors.New("nothing was typed: nothing was changed"), hint: "without a question: --token or --yes"}
	}
	return typed, nil
}

// readLine reads one line, without its end, until ctx ends. What comes after it
// stays unread.
func readLine(ctx context.Context, in *os.File) (string, error) {
	var line []byte
	var b [1]byte
	for {
		for !readable(in, 100*time.Millisecond) {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
		}
		n, err := in.Read(b[:])
		switch {
		case err != nil || n == 0:
			return string(line), errors.New("the input is at its end")
		case b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, b[0])
	}
}
