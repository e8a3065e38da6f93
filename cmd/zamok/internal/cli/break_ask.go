package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// confirm has the user type the name of the lock: that takes a look at what is on
// the screen, which a y does not. It writes by itself and not by talk, because the
// question must be there before the answer is read.
func (a *app) confirm(ctx context.Context, l inspect.Lock, warning string) error {
	question := "zamok: " + a.talk.clean(strings.ReplaceAll(warning, "\n", " ")) + "\nzamok: type the name of the lock to go on: "
	if _, err := a.stderr.WriteString(question); err != nil {
		return a.written(err)
	}
	typed, err := readLine(ctx, a.stdin)
	if err != nil {
		_, _ = a.stderr.WriteString("\n") // the cursor stands behind the question
	}
	var stopped *interrupted
	name := visible(l.Name)
	switch {
	case errors.As(err, &stopped):
		return &failure{code: stopped.code(), err: fmt.Errorf("nothing was changed: %w", stopped)}
	case err == nil && (typed == l.Name || typed == name):
		return nil
	case typed == "":
		return &failure{code: exit.Usage, err: errors.New("no name was typed: nothing was changed"), hint: "without a question: --token or --yes"}
	}
	return &failure{code: exit.Usage, err: fmt.Errorf("%q is not the name of the lock: nothing was changed", typed), hint: "type " + name + ", to show that you mean it"}
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
