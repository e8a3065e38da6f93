// Command fault tries zamok under faults: see docs/faults.md.
package main

import (
	"os"

	"github.com/zamok-go/zamok/lab/fault/run"
)

func main() { os.Exit(run.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
