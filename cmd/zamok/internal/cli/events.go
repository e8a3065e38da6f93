package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/inspect"
)

// mostEvents is how many the server keeps, and how many are read at once.
const mostEvents = 1000

// eventsFlags are the flags of zamok events.
type eventsFlags struct {
	server serverFlags
	follow bool
	most   int
	asJSON bool
}

func (a *app) eventsCommand() *cobra.Command {
	f := &eventsFlags{}
	cmd := &cobra.Command{
		Use:   "events [flags]",
		Short: "List what happened to locks: losses, breaks",
		Long: `Lists what happened to locks beside taking and releasing, oldest first: leases that
were not renewed in time, taken, deleted, broken by an operator, held for too long,
or lost with the server's data. The server keeps the newest 1,000.`,
		Example:               "  zamok events\n  zamok events -f\n  zamok events -n 1000 --json | jq 'select(.kind == \"broken\")'",
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.most < 1 || f.most > mostEvents {
				return usage("the server keeps the newest 1,000", "-n is %d; it must be 1 to %d", f.most, mostEvents)
			}
			return a.looking(cmd.Context(), &f.server, func(ctx context.Context, in *inspect.Inspector) error {
				return a.events(ctx, f, in)
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on, and print what happens from now on")
	cmd.Flags().IntVarP(&f.most, "number", "n", 50, "print the newest `N`")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, one object a line: see docs/cli.md")
	f.server.add(cmd.Flags())
	return cmd
}

func (a *app) events(ctx context.Context, f *eventsFlags, in *inspect.Inspector) error {
	list, err := in.Events(ctx, "", f.most)
	if err != nil {
		return err
	}
	if len(list) == 0 && !f.asJSON {
		a.talk.say("no events so far")
	}
	p := &eventLister{a: a, asJSON: f.asJSON, follow: f.follow, page: a.pageWidth()}
	if err := p.write(list); err != nil || !f.follow {
		return err
	}
	return a.follow(ctx, in, p)
}

// follow asks for more once a second, until a signal comes.
func (a *app) follow(ctx context.Context, in *inspect.Inspector, p *eventLister) error {
	down := outage{talk: a.talk}
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for {
		list, err := in.Events(ctx, p.last, mostEvents)
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err = down.judge(err); err != nil {
			return err
		}
		if err = p.write(list); err != nil {
			return err
		}
		if len(list) == mostEvents {
			continue // there are more
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// eventLister writes events as a table, piece by piece, or as JSON.
type eventLister struct {
	a      *app
	asJSON bool
	follow bool
	page   int
	layout *layout
	last   string // the id of the last that was written
}

func (p *eventLister) write(list []inspect.Event) error {
	if len(list) == 0 {
		return nil
	}
	p.last = list[len(list)-1].ID
	if p.asJSON {
		for _, e := range list {
			if err := p.a.jsonLine(jsonEventOf(e)); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{}
	if p.layout == nil {
		when := "AGO"
		if p.follow {
			when = "TIME"
		}
		rows = append(rows, []string{when, "KIND", "LOCK", "HOLDER", "WHAT"})
	}
	for _, e := range list {
		rows = append(rows, p.row(e))
	}
	if p.layout == nil {
		p.layout = p.newLayout(rows)
	}
	return p.a.print(func(w io.Writer) { p.layout.write(w, rows) })
}

const (
	leastWhat = 24 // how much of what happened there is room for beside names
	leastName = 16 // of a name or a holder that may come later
)

// newLayout cuts the reasons that people gave only at a terminal, which shows the
// rest when it is made wider. A file or a pipe keeps them.
func (p *eventLister) newLayout(rows [][]string) *layout {
	cut := []int{2, 3}
	if isTerminal(p.a.stdout) {
		cut = append(cut, 4)
	}
	var measured [][]string
	for _, row := range rows {
		measured = append(measured, append(slices.Clone(row[:4]), shorten(row[4], leastWhat)))
	}
	l := newLayout(p.page, measured, cut...)
	l.atLeast(1, len("max-hold"))
	if p.follow { // what comes later is not known
		l.atLeast(2, leastName)
		l.atLeast(3, leastName)
	}
	return l
}

// row has the time as "how long ago"; while it follows, as the clock of this
// machine, since the lines stay on the screen.
func (p *eventLister) row(e inspect.Event) []string {
	when := ago(e.Ago)
	if p.follow {
		when = e.Time.Local().Format("01-02 15:04:05")
	}
	return []string{when, visible(e.Kind), visible(e.Title()), serviceOn(e.Service, e.Holder), eventText(e)}
}

// eventText says what happened, and what it led to. The kind stands beside it.
func eventText(e inspect.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case e.Now: // while it was held: the old holder may have been at work
		add("taken away by %s", visible(e.By))
	case e.By != "":
		add("by %s", visible(e.By))
	}
	if e.Why != "" {
		add("%s", visible(e.Why))
	}
	if e.Held > 0 {
		add("held for %s", ago(e.Held))
	}
	if e.Next.Token != "" || e.Next.Foreign {
		add("then %s", who(e.Next))
	}
	if e.More > 0 {
		add("and %d more at that time", e.More)
	}
	return strings.Join(parts, "; ")
}

// jsonEvent is one line of events --json.
type jsonEvent struct {
	ID      string      `json:"id"`
	Time    string      `json:"time"` // by the server's clock, RFC 3339 in UTC
	TimeMS  int64       `json:"time_ms"`
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Key     string      `json:"key"`
	Holder  *jsonHolder `json:"holder"`
	Service string      `json:"service"`
	Fence   string      `json:"fence"`
	HeldMS  int64       `json:"held_ms"`
	By      string      `json:"by"`
	Now     bool        `json:"now"` // broken with --now; else the holder was asked
	Why     string      `json:"why"`
	Next    *jsonHolder `json:"next"` // null when nobody, or not known
	More    int         `json:"more"`
}

func jsonEventOf(e inspect.Event) jsonEvent {
	return jsonEvent{
		ID: e.ID, Time: e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), TimeMS: e.Time.UnixMilli(), Kind: e.Kind, Name: e.Name, Key: e.Key,
		Holder: holderOrNull(e.Holder), Service: e.Service, Fence: fenceText(e.Fence), HeldMS: ms(e.Held), By: e.By, Now: e.Now, Why: e.Why,
		Next: holderOrNull(e.Next), More: e.More,
	}
}
