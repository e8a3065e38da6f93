package cli

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/demo"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver/memory"
)

func (a *app) demoCommand() *cobra.Command {
	var server serverFlags
	length := duration(8 * time.Second)
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show what zamok does, in seven short acts",
		Long: `Plays seven short acts, each one claim about distributed locks, and judges each by
what it observed. The exit code is 0 only if all claims held.

It needs no server: it has one in memory. With --redis it plays on a real one,
under keys of its own that it removes at the end. ZAMOK_REDIS and REDIS_URL are
not looked at.`,
		Example:               "  zamok demo\n  zamok demo --for 4s --redis redis://localhost:6379",
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d := time.Duration(length); d < demo.Shortest || d > time.Hour {
				return usage("8s is good to read along", "--for is %v; it must be %v to 1h", d, demo.Shortest)
			}
			return a.demo(cmd.Context(), &server, time.Duration(length))
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&length, "for", "about how much `TIME` the acts take together")
	server.add(cmd.Flags())
	cmd.Flags().Lookup("redis").Usage = "`URL` of a real server to play on (default: one in memory)"
	return cmd
}

func (a *app) demo(ctx context.Context, f *serverFlags, length time.Duration) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	c := demo.Config{
		For: length, Out: a.stdout, Colour: colourful(a.stdout),
		Prefix: f.prefix + "zamok-demo:" + strings.ToLower(rand.Text()[:10]) + ":",
	}
	if f.given("redis") || f.given("redis-url-file") {
		srv, err := a.open(signals.waiting, f)
		if err != nil {
			return err
		}
		defer srv.close()
		defer srv.sweep(c.Prefix)
		c.Driver, c.Where = srv.driver, srv.target.String()
	} else {
		m := memory.New()
		demo.Twins(m)
		c.Driver, c.Where = m, "a server in memory"
	}
	good, err := demo.Run(signals.waiting, c)
	if err == nil && !good {
		a.code = exit.Failed
	}
	return err
}

// sweep removes the demo's keys, the counter of fences among them.
func (s *server) sweep(prefix string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for keys := s.client.Scan(ctx, 0, prefix+"*", 1000).Iterator(); keys.Next(ctx); {
		s.client.Del(ctx, keys.Val())
	}
}

// noColour is a name with the spelling of others: see no-color.org.
const noColour = "NO_COLOR"

// colourful says whether to colour what is written to f: a terminal, unless
// the variable of no-color.org is set or the terminal is a dumb one.
func colourful(f *os.File) bool {
	if os.Getenv(noColour) != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return isTerminal(f)
}
