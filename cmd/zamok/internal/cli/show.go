package cli

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

func (a *app) showCommand() *cobra.Command {
	var server serverFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show [flags] NAME",
		Short:   "Show who holds a lock and who waits for it",
		Long:    "Shows one lock: its holder, what is left, its fence, and those who wait, in order.\nThe exit code is 0 if it is held and 1 if it is free.",
		Example: "  zamok show nightly\n  zamok show --json nightly | jq .waiting",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("write: zamok show [flags] NAME", "one name of a lock is expected, not %d", len(args))
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.looking(cmd.Context(), &server, func(ctx context.Context, in *inspect.Inspector) error {
				l, err := in.Show(ctx, args[0])
				if err != nil {
					return err
				}
				if !l.Held {
					a.code = exit.Failed
				}
				if asJSON {
					return a.json(jsonOf(l))
				}
				return a.print(func(w io.Writer) { printLock(w, l) })
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: see docs/cli.md")
	server.add(cmd.Flags())
	return cmd
}

func (a *app) lsCommand() *cobra.Command {
	var server serverFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls [flags] [PATTERN]",
		Short:   "List locks",
		Long:    "Lists the locks whose names match PATTERN, all without one. In it * stands for any\ntext, ? for one character, [a-z] for one of a range.\n\nIt looks through all keys of the database.",
		Example: "  zamok ls\n  zamok ls 'deploy-*'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("put the pattern in quotes, so that the shell leaves it alone", "one pattern is expected, not %d", len(args))
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			return a.looking(cmd.Context(), &server, func(ctx context.Context, in *inspect.Inspector) error {
				locks, err := in.List(ctx, pattern)
				if err != nil {
					return err
				}
				if asJSON {
					list := []jsonLock{}
					for _, l := range locks {
						list = append(list, jsonOf(l))
					}
					return a.json(list)
				}
				if len(locks) == 0 {
					a.talk.say("no locks")
					return nil
				}
				return a.print(func(w io.Writer) { printLocks(w, locks) })
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: see docs/cli.md")
	server.add(cmd.Flags())
	return cmd
}

// looking connects and looks.
func (a *app) looking(ctx context.Context, f *serverFlags, look func(context.Context, *inspect.Inspector) error) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, f)
	if err != nil {
		return err
	}
	defer srv.close()
	in, err := inspect.New(srv.driver, f.prefix)
	if err != nil {
		return err
	}
	return look(signals.waiting, in)
}

func (a *app) json(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return a.written(e.Encode(v))
}

// The JSON form. Fields are added, never renamed or taken away. Fences are
// strings: many readers of JSON keep 53 bits. Times are whole milliseconds.
type jsonLock struct {
	Name    string       `json:"name"`
	Key     string       `json:"key"`
	Held    bool         `json:"held"`
	Holder  *jsonHolder  `json:"holder"`  // null when free
	Service string       `json:"service"` // of the holder; empty when not known
	Reason  string       `json:"reason"`
	Fence   string       `json:"fence"` // "0" when free or foreign
	HeldMS  int64        `json:"held_ms"`
	LeftMS  int64        `json:"left_ms"`
	NoTTL   bool         `json:"no_ttl"`
	Waiting int          `json:"waiting"`
	Waiters []jsonWaiter `json:"waiters"` // at most 1,000
	Error   string       `json:"error,omitempty"`
}

type jsonHolder struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Client  string `json:"client"`
	Token   string `json:"token"`
	Foreign bool   `json:"foreign"`
	Resting bool   `json:"resting"`
}

type jsonWaiter struct {
	Place    int        `json:"place"`
	Holder   jsonHolder `json:"waiter"`
	WaitedMS int64      `json:"waited_ms"`
	TTLMS    int64      `json:"ttl_ms"`
	Alive    bool       `json:"alive"`
	Polls    bool       `json:"polls"`
}

func jsonOf(l inspect.Lock) jsonLock {
	j := jsonLock{
		Name: l.Name, Key: l.Key, Held: l.Held, Service: l.Service, Reason: l.Reason, Fence: strconv.FormatInt(l.Fence, 10), HeldMS: ms(l.Since), LeftMS: ms(l.Left),
		NoTTL: l.NoTTL, Waiting: l.Waiting, Waiters: []jsonWaiter{},
	}
	if l.Err != nil {
		j.Error = l.Err.Error()
	}
	if l.Held {
		h := jsonHolder(l.Holder)
		j.Holder = &h
	}
	for _, w := range l.Waiters {
		j.Waiters = append(j.Waiters, jsonWaiter{
			Place: w.Place, Holder: jsonHolder(w.Holder), WaitedMS: ms(w.Waited), TTLMS: ms(w.TTL), Alive: w.Alive, Polls: w.Polls,
		})
	}
	return j
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
