// Command bench races zamok with other libraries, with what one would write by hand and
// with its own scripts alone: see docs/performance.md.
//
//	make bench                       # all, 25 minutes on a quiet machine
//	make bench ONLY='cycle|busy'     # some scenarios; the figures of the others are kept
//	make bench-quick                 # does it work? nothing is written
//	go run ./bench -none             # tables and plots anew from the kept figures
//
// Package parts has benchmarks of single parts, for go test.
package main

import (
	"os"

	"github.com/zamok-go/zamok/lab/bench/run"
)

func main() { os.Exit(run.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
