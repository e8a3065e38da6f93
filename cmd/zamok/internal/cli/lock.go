package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// lockFlags are the flags of zamok lock.
type lockFlags struct {
	claim
	asJSON bool
	asEnv  bool
}

func (a *app) lockCommand() *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME --ttl TIME",
		Short: "Take a lock for a script, and print its token",
		Long: `Waits for the lock NAME, prints the token of the lease, and exits. Exit code 0
means that the lock is taken; any other, that it is not.

Nobody renews this lock. It ends after --ttl, whatever the script is doing then,
unless "zamok renew" raises that, and "zamok unlock" ends it before; both need the
token. What must be stopped when its lock ends is better run by "zamok run".`,
		Example: `  export ZAMOK_TOKEN
  ZAMOK_TOKEN=$(zamok lock deploy --ttl 10m) || exit
  trap 'zamok unlock deploy' EXIT

  zamok lock --env deploy --ttl 30m >>"$GITHUB_ENV"   # for later steps of a CI job
  zamok lock -N 3 api --ttl 1m                        # zamok unlock semaphore:api ends it`,
		Args:                  oneName("zamok lock [flags] NAME --ttl TIME"),
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			return a.lock(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.addTTL(flags, "`TIME` after which the lock ends unless it is renewed, 100ms to 24h;\nneeded")
	f.addKinds(flags)
	f.addLimits(flags, "exit code `N` when the lock was not obtained, 1 to 255")
	flags.BoolVar(&f.asEnv, "env", false, "print ZAMOK_TOKEN=… and ZAMOK_FENCE=…, a line each")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: see docs/cli.md")
	f.addTalk(flags)
	f.server.add(flags)
	return cmd
}

func (f *lockFlags) check(cmd *cobra.Command, name string) error {
	f.name = name
	f.limited = cmd.Flags().Changed("wait")
	f.service, f.command = "zamok lock", "zamok lock "+name
	if f.asEnv && f.asJSON {
		return usage("leave out one", "--env and --json were both given")
	}
	if err := checkGivenTTL(cmd, f.ttl); err != nil {
		return err
	}
	if err := f.checkKinds(cmd.Flags().Changed); err != nil {
		return err
	}
	// 0 would tell the script that it has the lock.
	if err := f.checkLimits(1); err != nil {
		return err
	}
	return checkName(f.server.prefix, name)
}

// lock takes the lock and gives it away: to whoever reads stdout.
func (a *app) lock(ctx context.Context, f *lockFlags) error {
	if thrownAway(a.stdout) {
		return &failure{
			code: exit.Output, err: errors.New("stdout is closed: nobody would have the token"),
			hint: fmt.Sprintf("write: ZAMOK_TOKEN=$(zamok lock %s --ttl %v), or send it to a file", f.name, &f.ttl),
		}
	}
	m := &zamok.MutexConfig{TTL: time.Duration(f.ttl), Reason: f.reason}
	return a.take(ctx, &f.claim, m, func(h *hold) error {
		err := a.giveAway(f, h)
		if err == nil {
			return nil
		}
		if failed := h.lease.Release(context.Background()); failed != nil && !errors.Is(failed, zamok.ErrLost) {
			a.notReleased(&f.claim, failed, m.TTL)
		}
		if errors.Is(err, zamok.ErrLost) {
			err = &worded{fmt.Sprintf("lost %s before its token was printed: %v", f.thing(err), reason(err)), err}
		}
		return err
	})
}

// giveAway prints the token and leaves the lock to it. Printing comes first: a
// lock whose token nobody has would be in the way for the whole ttl.
func (a *app) giveAway(f *lockFlags, h *hold) error {
	text, err := f.text(h.lease)
	if err != nil {
		return err
	}
	if err := a.handOut(h, text); err != nil {
		return err
	}
	if err := whole(h.signals.waiting, h.lease, time.Duration(f.ttl)); err != nil { // the reader may have been slow
		return err
	}
	if _, err := h.lease.Detach(); err != nil {
		return err
	}
	h.detached = true
	return nil
}

// handOut writes to stdout. A reader may take its time: meanwhile the lock is
// renewed, and a signal, or its loss, is the end.
func (a *app) handOut(h *hold, text string) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(a.stdout, text)
		done <- err
	}()
	select {
	case err := <-done:
		return a.written(err)
	case <-h.lease.Context().Done():
		return context.Cause(h.lease.Context())
	}
}

// jsonLease is a lock that was taken: see json.go for the rules.
type jsonLease struct {
	Name  string `json:"name"`
	Token string `json:"token"`
	Fence string `json:"fence"`
	TTLMS int64  `json:"ttl_ms"`
}

// text is what the script gets. Tokens and fences have no character that a shell,
// or a file of variables, would need to have quoted.
func (f *lockFlags) text(l *zamok.Lease) (string, error) {
	fence := strconv.FormatInt(l.Fence(), 10)
	switch {
	case f.asJSON:
		b, err := json.Marshal(jsonLease{Name: l.Name(), Token: l.Token(), Fence: fence, TTLMS: ms(time.Duration(f.ttl))})
		return string(b) + "\n", err
	case f.asEnv:
		return "ZAMOK_TOKEN=" + l.Token() + "\nZAMOK_FENCE=" + fence + "\n", nil
	}
	return l.Token() + "\n", nil
}
