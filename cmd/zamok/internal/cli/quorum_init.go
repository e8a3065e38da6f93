package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// defaultQuarantine is that of a quorum, whose members always have one.
const defaultQuarantine = duration(time.Minute)

func (a *app) quorumCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quorum",
		Short: "Make a quorum of servers that share nothing",
		Long: `A lock of a quorum is held by whoever a majority of its members has granted it to:
3, 5 or 7 servers that share nothing. It is held, renewed and taken while fewer
than half of them are down, hang, or have lost their data. What works on one is
zamok run --quorum, zamok show --quorum and zamok doctor --quorum.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("write: zamok quorum init", "%q is not a command of zamok quorum", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			_ = cmd.Help()
			return &failure{code: exit.Usage, err: errors.New("no command given"), silent: true}
		},
	}
	cmd.AddCommand(a.quorumInitCommand())
	return cmd
}

func (a *app) quorumInitCommand() *cobra.Command {
	f := &serverFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Say of new servers that they are a quorum, and may serve at once",
		Long: `Writes on each of 3, 5 or 7 new servers who its members are, and the longest TTL
of all locks (--quarantine, by default 1m), for which a member that was restarted or
has lost its data votes for nobody. Without init a new member does so too, at its
first use, so that all that this spares is that time.

All who use the quorum name the same members, by the same hosts and ports, and the
same --quarantine: a member refuses whoever says something else.

It refuses all if one of them has any key, or cannot be reached. One that is empty
beside others that are in use may have lost votes: it serves by itself when its
quarantine is over.`,
		Example:               `  zamok quorum init --redis redis://a:6379 --redis redis://b:6379 --redis redis://c:6379`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.quorum = true
			return a.lookingAtAll(cmd.Context(), f, func(ctx context.Context, q *quorum) error {
				return a.initQuorum(ctx, q, f)
			})
		},
	}
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	_ = cmd.Flags().MarkHidden("quorum")
	return cmd
}

func (a *app) initQuorum(ctx context.Context, q *quorum, f *serverFlags) error {
	longest := time.Duration(f.quarantine)
	before := q.Members(ctx)
	all, err := q.Stamp(ctx, longest)
	if err == nil {
		for n, m := range all {
			done := "serves from now on"
			if before[n].State == inspect.MemberServes {
				done = "was a member before, and serves"
			}
			a.talk.say("%s: %s", m.Name, done)
		}
		a.talk.say("a quorum of %d members; the longest TTL of its locks, and the quarantine of a member, is %v", len(all), longest)
		return nil
	}
	unreachable, lone := false, false
	for _, m := range all {
		unreachable = unreachable || m.State == inspect.MemberUnreachable
		lone = lone || m.State == inspect.MemberReplica || m.State == inspect.MemberTwice || m.State == inspect.MemberOtherTerms || m.Quarantine > 0 && m.Quarantine != longest
		a.talk.fail("%s: %s", m.Name, unfit(m, longest))
	}
	switch {
	case unreachable:
		return &failure{code: exit.Unavailable, err: errors.New("no member was changed, since not all can be asked"), hint: "check that they run and can be reached from here"}
	case errors.Is(err, inspect.ErrUsed) && lone:
		return &failure{code: exit.Config, err: errors.New("no member was changed, since they cannot be a quorum together"), hint: "each must be a server of its own, that was told no other members and no other --quarantine"}
	case errors.Is(err, inspect.ErrUsed):
		return &failure{code: exit.Config, err: errors.New("no member was changed, since not all are new"), hint: "without init each serves by itself, when the quarantine that begins at its first use is over"}
	}
	return err
}

// unfit says what a member is that is not to be stamped, or what one is that could be.
func unfit(m inspect.Member, longest time.Duration) string {
	switch {
	case m.State == inspect.MemberNew && m.Empty:
		return "new and empty"
	case m.State == inspect.MemberNew:
		return "it is not empty, so it may have lost a vote"
	case m.State == inspect.MemberServes && m.Quarantine != longest:
		return fmt.Sprintf("it is a member with a quarantine of %v", m.Quarantine)
	}
	return stateOf(m)
}
