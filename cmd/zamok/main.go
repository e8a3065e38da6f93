// Command zamok runs commands under distributed locks on Redis or Valkey, and
// shows who holds them. See docs/cli.md.
package main

import (
	"context"
	"os"

	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	// A keeper and a waiting child are this binary too, and must be up in a
	// moment: they come before everything else.
	if code, ok := child.Intercept(os.Args); ok {
		return code
	}
	return cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
