package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver"
)

// failure is an error with its exit code and with what to do about it.
type failure struct {
	code   int
	err    error
	hint   string
	silent bool // nothing is said: the user asked for that
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// usage is a mistake on the command line.
func usage(hint, format string, args ...any) error {
	return &failure{code: exit.Usage, err: fmt.Errorf(format, args...), hint: hint}
}

// explain finds the exit code and the hint of an error. Every error of the
// program passes here, so this is the one place where codes are given to errors.
func explain(err error) *failure {
	var (
		known   *failure
		stopped *interrupted
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &stopped):
		return &failure{code: stopped.code(), err: fmt.Errorf("stopped by %w", stopped)}
	}
	for _, f := range []func(error) *failure{ofConnecting, ofServer, ofLock, ofCommandLine} {
		if found := f(err); found != nil {
			return found
		}
	}
	return &failure{code: exit.Failed, err: err}
}

func ofConnecting(err error) *failure {
	var (
		unreachable *connect.UnreachableError
		refused     *connect.RefusedError
		setup       *connect.SetupError
	)
	switch {
	case errors.As(err, &unreachable):
		return &failure{code: exit.Unavailable, err: err, hint: "check that the server runs and that its address is right; --connect-timeout says how long to try"}
	case errors.As(err, &refused):
		code, hint := words(refused.Err.Error())
		return &failure{code: code, err: err, hint: hint}
	case errors.Is(err, connect.ErrNoTLS):
		return &failure{code: exit.Usage, err: errors.New("flags for TLS were given, but the URL is not one of TLS"), hint: "write rediss:// instead of redis://"}
	case errors.As(err, &setup):
		return &failure{code: exit.Config, err: err, hint: "check the files of --tls-ca, --tls-cert and --tls-key, the name in the server's certificate (--tls-server-name), and that the port speaks TLS"}
	}
	return nil
}

// ofServer explains what the server itself said, within the library's error or
// without it.
func ofServer(err error) *failure {
	var refused *zamok.ServerError
	var raw *driver.ServerError
	switch {
	case errors.As(err, &refused):
		code := exit.Config
		if refused.Denied() {
			code = exit.Denied
		}
		return &failure{code: code, err: fmt.Errorf("lock %q: the server refused: %w", refused.Name, refused.Err), hint: refused.Hint}
	case errors.As(err, &raw) && (!errors.Is(err, zamok.ErrUnavailable) || willNot(raw.Text)):
		code, hint := words(raw.Text)
		var away *zamok.UnavailableError
		if errors.As(err, &away) {
			err = unhinted(err, away)
		}
		return &failure{code: code, err: err, hint: hint}
	}
	return nil
}

// unhinted is the error in plain words without its hint, which stands in a line of
// its own.
func unhinted(err error, away *zamok.UnavailableError) error {
	return &worded{strings.Replace(strip(err).Error(), " ("+away.Hint+")", "", 1), err}
}

// willNot says whether the server is there and will not do it: nothing that
// waiting for it would change soon.
func willNot(text string) bool {
	return strings.Contains(text, "READONLY") || strings.Contains(text, "OOM ") || strings.Contains(text, "MOVED ")
}

// words explains the server's text.
func words(text string) (code int, hint string) {
	for _, w := range []struct {
		text string
		code int
		hint string
	}{
		{"NOAUTH", exit.Denied, "the server asks for a password: write redis://:PASSWORD@HOST or redis://USER:PASSWORD@HOST, best in ZAMOK_REDIS or in a file for --redis-url-file"},
		{"WRONGPASS", exit.Denied, "user or password are wrong: check the URL; special characters in it must be percent-encoded"},
		{"without any password configured", exit.Denied, "the URL has a password, but the server has none: leave it out"},
		{"NOPERM", exit.Denied, "give the user the rights that docs/guarantees.md lists"},
		{"WRONGTYPE", exit.Config, "a key of this lock is in use for something else: choose another name or --prefix"},
		{"DB index is out of range", exit.Config, "the server has fewer databases: check the number at the end of the URL"},
		{"No such master", exit.Config, "the sentinels know no master of that name: check the path of the URL against sentinel.conf"},
		{"OOM ", exit.Config, "the server's memory is full: raise maxmemory, or remove keys"},
		{"cluster support disabled", exit.Config, "the server is no cluster: write redis:// instead of redis+cluster://"},
		{"MOVED ", exit.Config, "the server is a node of a cluster: write redis+cluster:// instead of redis://"},
		{"READONLY", exit.Config, "this is a replica: give the address of the primary, or use a Sentinel URL"},
	} {
		if strings.Contains(text, w.text) {
			return w.code, w.hint
		}
	}
	return exit.Config, "see docs/guarantees.md for what zamok needs of a server"
}

func ofLock(err error) *failure {
	var (
		bad    *zamok.ConfigError
		away   *zamok.UnavailableError
		lost   *zamok.LostError
		closed *zamok.QuarantineError
		few    *zamok.ReplicasError
	)
	switch {
	case errors.As(err, &few):
		text := fmt.Sprintf("%s not obtained: only %d of %d replicas have it after %v", few.Name, few.Got, few.Want, few.After)
		return &failure{code: exit.Unavailable, err: &worded{text, err}, hint: "INFO replication on the server says which are connected and in step; --wait-replicas asks for them"}
	case errors.As(err, &closed):
		return &failure{code: exit.Unavailable, err: strip(err), hint: "it ends by itself: wait, without -n or with a longer -w; see docs/guarantees.md"}
	case errors.As(err, &bad) && slices.Contains([]string{"MutexConfig.TTL", "Config.TTL", "Config.Quarantine", "duration"}, bad.Field):
		return &failure{code: exit.Usage, err: fmt.Errorf("bad %s: %w", bad.Field, bad.Err), hint: "--quarantine has 1s to 24h, and no --ttl may be longer"}
	case errors.As(err, &bad):
		return &failure{code: exit.Usage, err: fmt.Errorf("bad %s: %w", bad.Field, bad.Err), hint: "a name has 1 to 512 bytes, any but NUL, a --prefix at most 128; braces must be a Redis hash tag, such as {a}"}
	case errors.As(err, &away):
		return &failure{code: exit.Unavailable, err: unhinted(err, away), hint: away.Hint}
	case errors.Is(err, zamok.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &failure{code: exit.Unavailable, err: strip(err), hint: "check that the server runs and can be reached from here"}
	case errors.As(err, &lost):
		return &failure{code: exit.Lost, err: strip(err), hint: "another may have run meanwhile: see docs/guarantees.md"}
	}
	return nil
}

func ofCommandLine(err error) *failure {
	var (
		url   *connect.URLError
		start *child.StartError
	)
	switch {
	case errors.As(err, &url):
		return &failure{code: exit.Usage, err: err, hint: url.Hint}
	case errors.As(err, &start):
		hint := "check the name and PATH; there is no shell in between: for shell syntax use sh -c '…'"
		if start.Code == exit.CannotRun {
			hint = "is it executable (chmod +x), and does its first line name an interpreter?"
		}
		return &failure{code: start.Code, err: err, hint: hint}
	}
	return nil
}

// strip takes the library's prefix off: the program's own stands before it.
func strip(err error) error {
	text := strings.ReplaceAll(err.Error(), "zamok: ", "")
	return &worded{text, err}
}

type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }

func (w *worded) Unwrap() error { return w.err }
