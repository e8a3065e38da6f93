package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// instant is the TTL of a lock that is given back at once: what it costs the next
// in line if that fails. A lock that is handed over has as much.
const instant = 2 * time.Second

func (a *app) waitCommand() *cobra.Command {
	c := &claim{missed: "not free", conflict: exit.NotObtained, service: "zamok wait"}
	cmd := &cobra.Command{
		Use:   "wait [flags] NAME",
		Short: "Wait until all who are ahead in the line for a lock are done",
		Long: `Waits until the lock NAME is free and nobody stands in line before us. It stands
in line itself, is woken when its turn comes, and gives the lock back at once.

So the lock is taken for an instant, and while zamok waits, those who come later
stand behind it, and "zamok run -n" finds the lock held. When zamok exits, somebody
else may have the lock already: to be alone, use "zamok run".`,
		Example: `  zamok wait deploy && echo "the deployment that was running is over"
  zamok wait -w 10m migrations || exit`,
		Args:                  oneName("zamok wait [flags] NAME"),
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.name, c.command = args[0], "zamok wait "+args[0]
			c.limited = cmd.Flags().Changed("wait")
			c.try = c.limited && c.wait == 0
			if err := checkName(c.server.prefix, c.name); err != nil {
				return err
			}
			return a.wait(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&c.wait, "wait", "w", "wait at most this `TIME`, then exit with 75; 0 only asks\n(default: as long as it takes)")
	flags.Lookup("wait").DefValue = ""
	c.addQuiet(flags)
	c.server.add(flags)
	return cmd
}

func (a *app) wait(ctx context.Context, c *claim) error {
	return a.take(ctx, c, &zamok.MutexConfig{TTL: instant}, func(h *hold) error {
		// What becomes of the release changes nothing for whoever waited.
		if err := h.lease.Release(context.Background()); err != nil && !errors.Is(err, zamok.ErrLost) {
			a.notReleased(c, err, instant)
		}
		return nil
	})
}
