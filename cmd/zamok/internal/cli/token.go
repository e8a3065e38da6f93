package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// leases are what a token may be of: zamok.Mutex, zamok.RWMutex, zamok.Semaphore.
type leases interface {
	ExtendToken(ctx context.Context, token string, d time.Duration) error
	ReleaseToken(ctx context.Context, token string) error
}

// of is what the token is of, as far as the name tells. permits is how many a
// semaphore has.
func (t *byToken) of(client *zamok.Client, permits int) leases {
	if t.semaphore {
		return client.Semaphore(t.name, permits, nil)
	}
	return client.Mutex(t.name, nil)
}

// byToken is what renew and unlock have in common: the name of a lock, and the
// token of a lease that another process took.
type byToken struct {
	server    serverFlags
	name      string
	semaphore bool // semaphore:NAME was given
	token     string
	lost      string // what to do when the token does not hold the lock
}

const tokenSources = `TOKEN is what "zamok lock" printed. Without one it is that of ZAMOK_TOKEN, and with
- the first line of stdin. An argument can be read by all users of this machine (ps),
and whoever has a token can end the lock.`

func (a *app) renewCommand() *cobra.Command {
	t := &byToken{lost: "another may have had the lock meanwhile: stop what it protects, and take it anew with `zamok lock`"}
	var ttl duration
	cmd := &cobra.Command{
		Use:   "renew [flags] NAME [TOKEN] --ttl TIME",
		Short: "Renew a lock that a script took",
		Long: `Raises what is left of the lock NAME to --ttl, if the token still holds it. A lock is
never shortened. Of a permit, NAME is semaphore:NAME. Exit code 79 means that the token does not hold the lock any more.

` + tokenSources,
		Example: `  zamok renew deploy --ttl 10m || exit   # with ZAMOK_TOKEN from zamok lock
  zamok renew deploy - --ttl 10m <token`,
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.find(cmd, args, a.stdin); err != nil {
				return err
			}
			if err := checkGivenTTL(cmd, ttl); err != nil {
				return err
			}
			return a.byToken(cmd, t, func(ctx context.Context, l leases) error {
				return l.ExtendToken(ctx, t.token, time.Duration(ttl))
			})
		},
	}
	cmd.Flags().SortFlags = false
	addTTL(cmd.Flags(), &ttl, "`TIME` after which the lock ends from now on, 100ms to 24h; needed")
	t.server.add(cmd.Flags())
	return cmd
}

func (a *app) unlockCommand() *cobra.Command {
	t := &byToken{lost: "nothing was changed; the lock may have ended by its --ttl, or have been released before"}
	cmd := &cobra.Command{
		Use:   "unlock [flags] NAME [TOKEN]",
		Short: "Release a lock that a script took",
		Long: `Releases the lock NAME, if the token holds it: the first in line has it then. A
reader's share of it is released too; of a permit, NAME is semaphore:NAME. Exit
code 79 means that the token does not hold it, and that nothing was changed.

` + tokenSources + `

Within "zamok run", ZAMOK_TOKEN is the token of its lock: to release that one makes
zamok stop the command as soon as it learns of it.`,
		Example: `  trap 'zamok unlock deploy' EXIT   # with ZAMOK_TOKEN from zamok lock
  zamok unlock deploy - <token`,
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.find(cmd, args, a.stdin); err != nil {
				return err
			}
			return a.byToken(cmd, t, func(ctx context.Context, l leases) error {
				return l.ReleaseToken(ctx, t.token)
			})
		},
	}
	cmd.Flags().SortFlags = false
	t.server.add(cmd.Flags())
	return cmd
}

// addTTL adds a --ttl that has no default: nobody renews these locks, so only
// the script's author knows.
func addTTL(flags *pflag.FlagSet, ttl *duration, text string) {
	flags.Var(ttl, "ttl", text)
	flags.Lookup("ttl").DefValue = ""
}

func (c *claim) addTTL(flags *pflag.FlagSet, text string) { addTTL(flags, &c.ttl, text) }

func checkGivenTTL(cmd *cobra.Command, ttl duration) error {
	if !cmd.Flags().Changed("ttl") {
		return usage("nobody renews this lock: say how long the work can take at most, such as --ttl 10m", "--ttl is missing")
	}
	return checkTTL(ttl, "it is how long the work can take at most")
}

func oneName(form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("write: "+form, "one name of a lock is expected, not %d", len(args))
		}
		return nil
	}
}

// byToken connects and does what is done with a token.
func (a *app) byToken(cmd *cobra.Command, t *byToken, do func(context.Context, leases) error) error {
	signals := watchSignals(cmd.Context(), a.ignored)
	defer signals.stop()
	ctx := signals.waiting
	srv, err := a.open(ctx, &t.server)
	if err != nil {
		return err
	}
	defer srv.close()
	cfg, err := t.server.config(ctx, srv)
	if err != nil {
		return err
	}
	cfg.Name, cfg.Version, cfg.Command = "zamok lock", build(), cut(cmd.CommandPath()+" "+t.name, 256)
	client, err := zamok.New(srv.driver, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	permits := 1
	if t.semaphore { // as those say who use it
		permits = max(permits, t.look(ctx, srv).Permits)
	}
	err = do(ctx, t.of(client, permits))
	var lost *zamok.LostError
	if errors.As(err, &lost) && lost.By.Readers { // of whom the token may be one
		err = do(ctx, client.RWMutex(t.name, nil))
	}
	if stopped := new(interrupted); errors.As(err, &stopped) {
		return stopped
	}
	return t.explain(ctx, srv, err)
}

// find takes the arguments, and the token from where it is. What is wrong with
// them is said before anything is sent.
func (t *byToken) find(cmd *cobra.Command, args []string, stdin io.Reader) error {
	form := "write: " + cmd.UseLine()
	origin, code := "TOKEN", exit.Usage
	switch len(args) {
	case 0:
		return usage(form, "no name of a lock given")
	case 1:
		t.token = os.Getenv("ZAMOK_TOKEN")
		if t.token == "" {
			return usage(form, "no token given, and ZAMOK_TOKEN is not set")
		}
		origin, code = "ZAMOK_TOKEN", exit.Config
	case 2:
		t.token = args[1]
		if t.token == "-" {
			line, err := bufio.NewReader(io.LimitReader(stdin, 4096)).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return &failure{code: exit.Config, err: fmt.Errorf("cannot read the token from stdin: %w", err), hint: "its first line must be what zamok lock printed"}
			}
			t.token = strings.TrimSpace(line)
			origin, code = "stdin", exit.Config
		}
	default:
		return usage(form, "a name and a token are expected, but got %d arguments", len(args))
	}
	t.name, t.semaphore = strings.CutPrefix(args[0], semaphoreMark)
	return t.check(origin, code)
}

// check has the library look at name and token, on a server in memory, where
// nobody holds anything.
func (t *byToken) check(origin string, code int) error {
	client, err := zamok.New(memory.New(), &zamok.Config{Prefix: t.server.prefix})
	if err != nil {
		return err
	}
	defer client.Close()
	var bad *zamok.ConfigError
	err = t.of(client, 1).ReleaseToken(context.Background(), t.token)
	switch {
	case !errors.As(err, &bad):
		return nil
	case bad.Field != "token":
		return err
	case t.token == "": // an unset variable: another token must not take its place
		err = errors.New("it is empty")
	default: // not shown: who knows what it is
		err = errors.New("this is no token of zamok")
	}
	return &failure{code: code, err: fmt.Errorf("%s: %w", origin, err), hint: "a token is what `zamok lock` prints; it begins with z1/"}
}

// explain words the errors of the library, which knows of no commands.
func (t *byToken) explain(ctx context.Context, srv *server, err error) error {
	var lost *zamok.LostError
	if !errors.As(err, &lost) {
		return err
	}
	now := t.look(ctx, srv)
	what, hint := fmt.Sprintf("the token does not hold the lock %q: nobody does", t.name), t.lost
	switch {
	case lost.Reason == zamok.LostBroken:
		what = fmt.Sprintf("the lock %q is lost: %s", t.name, reason(lost))
		if slices.ContainsFunc(now.Holders, func(h inspect.Holder) bool { return h.Token == t.token }) {
			hint = "stop what it protects, then use `zamok unlock`: until then, or until its --ttl is over, nobody else has the lock"
		}
	case t.semaphore:
		what = fmt.Sprintf("the token holds no permit of %q: of others, %s held", t.name, use(now))
	case now.Kind == inspect.KindReadLock:
		what = fmt.Sprintf("the token does not hold the lock %q: it is held by %s", t.name, use(now))
	case lost.By == (zamok.Holder{}):
	case lost.By.Token == now.First().Token:
		what = fmt.Sprintf("the token does not hold the lock %q: it is %s", t.name, heldAs(now).Describe())
	default: // it has changed hands since
		what = fmt.Sprintf("the token does not hold the lock %q: it is held by %s", t.name, lost.By)
	}
	return &failure{code: exit.Lost, err: &worded{what, err}, hint: hint}
}

// look asks who has the lock now; the answer is empty when that cannot be told.
func (t *byToken) look(ctx context.Context, srv *server) inspect.Lock {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	in, err := inspect.New(srv.driver, t.server.prefix)
	if err != nil {
		return inspect.Lock{}
	}
	name := t.name
	if t.semaphore {
		name = semaphoreMark + name
	}
	l, _ := (&oneLock{name: name}).read(ctx, in)
	return l
}

func heldAs(l inspect.Lock) *zamok.HeldError {
	h := l.First()
	return &zamok.HeldError{
		Name: l.Name, Holder: h.Holder, Service: h.Service, Reason: h.Reason, Fence: h.Fence, Since: h.Since, TTL: h.Left, NoTTL: l.NoTTL,
	}
}
