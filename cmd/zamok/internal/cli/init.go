package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// quarantineFrom is where --quarantine is from when it is not given.
const quarantineFrom = "ZAMOK_QUARANTINE"

func (a *app) initCommand() *cobra.Command {
	f := &serverFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Say of a new server that it may serve at once, with a quarantine",
		Long: `With --quarantine (or ZAMOK_QUARANTINE) nobody is granted anything for so long
after the server was restarted, failed over or wiped, and at its first use. This
spares a new server the first one.

It refuses a server that has any key: such a server may have lost a lease. One
that has just lost all of them is empty, too: do not let it run at every start.`,
		Example:               `  zamok init --quarantine 1m`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(cmd.Context(), f)
		},
	}
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	return cmd
}

func (a *app) init(ctx context.Context, f *serverFlags) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, f)
	if err != nil {
		return err
	}
	defer srv.close()
	if f.quarantine == 0 {
		return usage("write: zamok init --quarantine 1m, the longest TTL of all locks", "--quarantine is missing")
	}
	in, err := inspect.New(srv.driver, f.prefix)
	if err != nil {
		return err
	}
	n, err := in.Stamp(signals.waiting, time.Duration(f.quarantine), nil)
	if errors.Is(err, inspect.ErrUsed) {
		hint := "its first use waits for the quarantine once, and nothing needs to be done"
		if n.Quarantine > 0 {
			hint = "it has a quarantine of " + n.Quarantine.String() + ": all who use it must say the same"
		}
		return &failure{code: exit.Config, err: errors.New("the server is not empty, so it may have lost a lease"), hint: hint}
	}
	if err != nil {
		return err
	}
	a.talk.say("the server serves from now on; its quarantine is %v", n.Quarantine)
	return nil
}

// tellQuarantine says so when nobody is granted anything just now. What cannot be had
// is not told.
func (a *app) tellQuarantine(ctx context.Context, in *inspect.Inspector) {
	switch n, err := in.Node(ctx); {
	case err != nil || n.Left == 0 && !n.Moved:
	case n.Moved:
		a.talk.say("quarantine: the server was restarted or failed over; for %v from its next use on, nobody is granted anything", n.Quarantine)
	default:
		a.talk.say("quarantine: the server was restarted, failed over or wiped, or is new; nobody is granted anything for %v more", n.Left.Round(time.Second))
	}
}
