package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// slotsFlags are those of zamok slots.
type slotsFlags struct {
	server serverFlags
	name   string
	set    bool // N was given
	slots  int
}

func (a *app) slotsCommand() *cobra.Command {
	f := &slotsFlags{}
	cmd := &cobra.Command{
		Use:   "slots [flags] NAME [N]",
		Short: "Tell, or set, how many permits a semaphore has",
		Long: `Prints how many permits of the semaphore NAME are held, and how many there are.

With N it sets how many there are, for all who use NAME, whatever they say with
"zamok run -N" or in their programs; it stays so until it is set anew. 0: what they
say counts again. Nobody loses a permit: with fewer, new ones are given when enough
have come back; with more, those who wait have them at once.`,
		Example: `  zamok slots api
  zamok slots api 20
  zamok slots api 0`,
		Args:                  f.args,
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkName(f.server.prefix, f.name); err != nil {
				return err
			}
			return a.slots(cmd.Context(), f)
		},
	}
	cmd.Flags().SortFlags = false
	f.server.add(cmd.Flags())
	return cmd
}

func (f *slotsFlags) args(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usage("write: zamok "+cmd.Use, "one name of a semaphore is expected, and perhaps a number")
	}
	f.name, f.set = strings.TrimPrefix(args[0], semaphoreMark), len(args) == 2
	if !f.set {
		return nil
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 || n > mostSlots {
		return usage("0 leaves it to those who use it", "%q is not a number of permits, 0 to 1000000", args[1])
	}
	f.slots = n
	return nil
}

func (a *app) slots(ctx context.Context, f *slotsFlags) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	ctx = signals.waiting
	srv, err := a.open(ctx, &f.server)
	if err != nil {
		return err
	}
	defer srv.close()
	if f.set {
		if err := f.limit(ctx, srv); err != nil {
			return err
		}
	}
	in, err := inspect.New(srv.driver, f.server.prefix)
	if err != nil {
		return err
	}
	l, err := in.ShowSemaphore(ctx, f.name)
	if err != nil {
		return err
	}
	return a.print(func(w io.Writer) { fmt.Fprintln(w, slotsText(l)) })
}

func slotsText(l inspect.Lock) string {
	of := "nobody says how many there are"
	switch {
	case l.Fixed:
		of = "set for all who use it"
	case l.Permits > 0:
		of = "as those say who use it"
	}
	return fmt.Sprintf("%s held; %s", use(l), of)
}

func (f *slotsFlags) limit(ctx context.Context, srv *server) error {
	cfg, err := f.server.config(ctx, srv)
	if err != nil {
		return err
	}
	client, err := zamok.New(srv.driver, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Semaphore(f.name, 1, nil).SetLimit(ctx, f.slots)
}
