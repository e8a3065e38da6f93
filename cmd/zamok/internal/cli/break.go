package cli

import (
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
	"github.com/zamok-go/zamok/inspect"
)

// breakFlags are the flags of zamok break.
type breakFlags struct {
	server serverFlags
	lock   oneLock

	reason  string
	by      string
	now     bool
	yes     bool
	token   string
	all     bool
	dryRun  bool
	wait    duration
	limited bool // --wait was given
}

func (a *app) breakCommand() *cobra.Command {
	f := &breakFlags{}
	cmd := &cobra.Command{
		Use:   "break [flags] NAME --reason TEXT",
		Short: "Have a lock's holder stop, or take the lock away from it",
		Long: `Asks the holder of the lock NAME to stop, and waits until it no longer has it. The
holder learns who asked and why, ends its work, and releases the lock; if it does
not, the lock ends by its TTL, which nothing raises any more.

With --now the lock is taken away at once, and the next in line has it, while the
old holder may still be at work. With --quorum there is no --now.

Of a lock that readers have, and of a semaphore (semaphore:NAME), it breaks one
holder, for which it asks or which --token names, or with --all every one.

It shows the lock and asks for its name first; where there is no terminal, --yes or
--token says that you mean it. A later holder than the one shown is never hit.`,
		Example: `  zamok break nightly --reason 'stuck on a dead disk'
  zamok break nightly --reason 'host is gone' --now --yes
  zamok break nightly --reason stuck --dry-run
  zamok break semaphore:api --reason 'new version' --all`,
		Args:                  f.lock.args,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags(), a.atTerminal()); err != nil {
				return err
			}
			if f.server.quorum {
				return a.withMembers(cmd.Context(), &f.server, func(ctx context.Context, q *quorum) error {
					return a.breakLock(ctx, f, &atMembers{lock: &f.lock, q: q, within: time.Duration(f.server.timeout)})
				})
			}
			return a.looking(cmd.Context(), &f.server, func(ctx context.Context, in *inspect.Inspector) error {
				return a.breakLock(ctx, f, &atServer{lock: &f.lock, in: in})
			})
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *breakFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for the holder and for the record: must be given")
	flags.BoolVar(&f.now, "now", false, "take the lock away at once; the holder may still be at work")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask whether you mean it")
	flags.StringVar(&f.token, "token", "", "do not ask, and break only the lease with this `TOKEN`: see\nzamok show --json")
	flags.BoolVar(&f.all, "all", false, "every holder of a lock that readers have, or of a semaphore")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and change nothing")
	flags.VarP(&f.wait, "wait", "w", "wait at most this `TIME` for the holder to stop, then exit with 75\n(default: until its lease ends)")
	flags.StringVar(&f.by, "by", "", "`WHO` breaks it (default: user@host)")
	flags.StringVar(&f.lock.key, "key", "", "the lock with this exact `KEY` (MutexConfig.Key); NAME may be left out")
	f.server.add(flags)
	flags.Lookup("wait").DefValue = ""
}

// atTerminal says whether somebody can be asked.
func (a *app) atTerminal() bool { return isTerminal(a.stdin) && isTerminal(a.stderr) }

func (f *breakFlags) check(flags *pflag.FlagSet, terminal bool) error {
	f.limited = flags.Changed("wait")
	switch {
	case strings.TrimSpace(f.reason) == "":
		return usage("say why: the holder is told, and the list of events keeps it", "--reason is missing")
	case len(f.reason) > 256:
		return usage("shorten it", "--reason has %d bytes; at most 256 are allowed", len(f.reason))
	case len(f.by) > 128:
		return usage("shorten it", "--by has %d bytes; at most 128 are allowed", len(f.by))
	case f.yes && f.token != "":
		return usage("--token is the safer of the two: leave out --yes", "--yes and --token were both given")
	case f.all && f.token != "":
		return usage("--token is of one holder: leave out one", "--all and --token were both given")
	case flags.Changed("token") && f.token == "":
		return usage("the holder's token is in the output of zamok show --json", "--token is empty")
	case f.now && f.server.quorum:
		return usage("its members cannot be told at one moment; without --now the holder is asked, and its lease ends within its TTL", "--now does not work on a quorum")
	case f.now && f.limited:
		return usage("there is nothing to wait for: leave out one", "--now and --wait were both given")
	case !terminal && !f.yes && f.token == "" && !f.dryRun:
		return usage("give --yes, or --token with the token that zamok show --json prints", "nobody can be asked whether you mean it: this is no terminal")
	}
	return nil
}

// breakLock shows the lock, makes sure, and breaks it.
func (a *app) breakLock(ctx context.Context, f *breakFlags, place breakable) error {
	l, err := place.read(ctx)
	if err != nil {
		return err
	}
	if err := a.print(func(w io.Writer) { place.print(w, a.pageWidth()) }); err != nil {
		return err
	}
	if err := f.possible(l); err != nil {
		return err
	}
	chosen, err := a.choose(ctx, f, l)
	if err != nil {
		return err
	}
	switch warning := f.willDo(l, chosen); {
	case f.dryRun:
		a.talk.say("%s", warning)
		a.talk.say("nothing was changed: --dry-run")
		return nil
	case f.yes || f.token != "":
		a.talk.say("%s", warning)
	default:
		if err := a.confirm(ctx, l, warning); err != nil {
			return err
		}
	}
	asked := &ending{a: a, f: f, place: place, lock: l}
	for _, h := range chosen {
		if err := a.breakOne(ctx, f, l, h, asked); err != nil {
			return err
		}
	}
	if more := l.Holding - len(l.Holders); f.all && more > 0 {
		a.talk.say("%d more hold it, who are not in the list: break it again", more)
	}
	if len(asked.holders) == 0 {
		return nil
	}
	return asked.await(ctx)
}

// breakOne breaks the lease of one holder.
func (a *app) breakOne(ctx context.Context, f *breakFlags, l inspect.Lock, h inspect.Holder, asked *ending) error {
	broken, err := asked.place.end(ctx, &inspect.BreakConfig{Token: h.Token, By: f.author(), Why: f.reason, Now: f.now})
	switch {
	case f.all && errors.Is(err, inspect.ErrChanged):
		a.talk.say("%s has ended its lease by itself", holder(h))
		return nil
	case err != nil:
		return f.notBroken(l, h, err)
	}
	if broken.AuditErr != nil {
		a.talk.say("warning: it is not on the list of events: %s", plain(broken.AuditErr))
	}
	if broken.Asked {
		asked.holders = append(asked.holders, h)
		asked.left = max(asked.left, broken.Left)
	} else {
		a.taken(l, h, broken)
	}
	return nil
}

// author is who breaks it. sudo hides the person behind root.
func (f *breakFlags) author() string {
	user := os.Getenv("SUDO_USER")
	if f.by != "" || user == "" {
		return f.by
	}
	host, _ := os.Hostname()
	return user + "@" + host
}

// possible says why this lock cannot be broken in this way.
func (f *breakFlags) possible(l inspect.Lock) error {
	name := visible(l.Title())
	switch {
	case len(l.Holders) == 0:
		return &failure{code: exit.Failed, err: fmt.Errorf("nobody holds %q: nothing was changed", name), hint: f.whereElse()}
	case f.token != "" && !l.Shared() && f.token != l.First().Token:
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q is held by another lease than that of --token: nothing was changed", name), hint: "the one that you mean has ended; `zamok show` tells who has the lock now"}
	case f.token != "" && l.Shared() && !slices.ContainsFunc(l.Holders, f.isToken):
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q: none of its holders has the token of --token: nothing was changed", name), hint: "the one that you mean has ended; `zamok show` tells who has it now"}
	case !f.now:
		return f.cannotBeAsked(l, l.First())
	}
	return nil
}

// whereElse says why a lock may not be there that somebody holds.
func (f *breakFlags) whereElse() string {
	if f.server.quorum {
		return "is the name right, and --prefix as the holder's?"
	}
	return "`zamok ls` lists the locks that are held; is --prefix as the holder's?"
}

func (f *breakFlags) isToken(h inspect.Holder) bool { return h.Token == f.token }

func (f *breakFlags) cannotBeAsked(l inspect.Lock, h inspect.Holder) error {
	name := visible(l.Title())
	switch {
	case h.Foreign && f.server.quorum:
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q is held by a foreign program, which cannot be asked to stop: nothing was changed", name), hint: "stop that program first; then delete its key on each member"}
	case h.Foreign && !l.Shared():
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q is held by a foreign program, which cannot be asked to stop: nothing was changed", name), hint: "stop that program first; then --now takes the lock away"}
	case h.Resting:
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q is at rest: nobody holds it who could be asked: nothing was changed", name), hint: fmt.Sprintf("the rest is over in %s; --now ends it at once", ago(l.Left))}
	}
	return nil
}

// willDo says before it is done what will be, and what it risks.
func (f *breakFlags) willDo(l inspect.Lock, chosen []inspect.Holder) string {
	h := chosen[0]
	if len(chosen) > 1 {
		var left, work time.Duration
		for _, h := range chosen {
			left, work = max(left, h.Left), max(work, atWork(h))
		}
		if f.now {
			return fmt.Sprintf("this takes it from all %d at once: they may go on until they notice, for %s at most, while the next ones work", len(chosen), ago(work))
		}
		return fmt.Sprintf("this asks all %d to stop; the last lease ends in %s at the latest", len(chosen), ago(left))
	}
	left := ago(h.Left)
	switch {
	case !f.now && h.Broken != nil:
		return fmt.Sprintf("it has been asked to stop before, by %s: %s", h.Broken.By, h.Broken.Why)
	case !f.now && h.Detached:
		return "the lease was detached: perhaps nobody is there to hear it, and then it ends in " + left
	case !f.now && h.Silent:
		return "the holder's process is silent: perhaps it does not hear it, and then the lease ends in " + left
	case !f.now:
		return fmt.Sprintf("this asks %s to stop; its lease ends in %s at the latest", holder(h), left)
	case h.Resting:
		return "this ends the rest: a host whose clock is behind may start the same job again"
	case h.Foreign:
		return fmt.Sprintf("this takes the lock from %s, which is not told: it may go on for as long as it likes while the next one works", holder(h))
	}
	return fmt.Sprintf("this takes %s from %s at once: it may go on until it notices, for %s at most, while the next one works", thing(l), holder(h), ago(atWork(h)))
}

// thing is what one holder has.
func thing(l inspect.Lock) string {
	switch l.Kind {
	case inspect.KindSemaphore:
		return "a permit"
	case inspect.KindReadLock:
		return "its share of the lock"
	}
	return "the lock"
}

// notBroken explains why Break changed nothing, or may have.
func (f *breakFlags) notBroken(l inspect.Lock, h inspect.Holder, err error) error {
	var changed *inspect.ChangedError
	name := visible(l.Title())
	switch {
	case errors.As(err, &changed) && l.Shared():
		return &failure{code: exit.Failed, err: fmt.Errorf("%q: %s has ended its lease meanwhile, and nothing was changed", name, holder(h)), hint: "there is nothing to break"}
	case errors.As(err, &changed) && changed.Now == (zamok.Holder{}):
		return &failure{code: exit.Failed, err: fmt.Errorf("%q was released meanwhile: nobody holds it, and nothing was changed", name), hint: "there is nothing to break"}
	case errors.As(err, &changed):
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q has changed hands meanwhile: %s has it now, and nothing was changed", name, who(changed.Now)), hint: "look at it again, and break it again if it is still to be broken"}
	case errors.Is(err, inspect.ErrDeaf):
		if why := f.cannotBeAsked(l, h); why != nil {
			return why
		}
		return &failure{code: exit.NotObtained, err: fmt.Errorf("%q: its holder cannot be asked to stop: nothing was changed", name), hint: "--now takes the lock away"}
	}
	return err
}

// taken says what became of a lock that was taken away.
func (a *app) taken(l inspect.Lock, h inspect.Holder, b inspect.Broken) {
	next := ": it is free"
	switch {
	case b.Next != (zamok.Holder{}):
		next = ": " + who(b.Next) + " has it now"
	case l.Shared():
		next = ""
	}
	what := fmt.Sprintf("%q", visible(l.Title()))
	if l.Shared() {
		what = thing(l) + " of " + what
	}
	a.talk.say("took %s from %s%s", what, holder(h), next)
	switch {
	case h.Resting:
	case h.Foreign:
		a.talk.say("the old holder is not told, and may still be at work")
	default:
		left := atWork(h)
		a.talk.say("the old holder is told; if that does not reach it, it may be at work until %s (%s) at most",
			time.Now().Add(left).Format("15:04:05"), ago(left))
	}
}

// atWork is how long a holder may take itself for one, at most: it may have
// renewed its lease since we looked.
func atWork(h inspect.Holder) time.Duration { return max(h.Left, h.TTL) }
