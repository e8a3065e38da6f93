// Program worker is one process of the traffic of a fault test: see traffic.Main.
package main

import (
	"os"

	"github.com/zamok-go/zamok/lab/fault/traffic"
)

func main() { os.Exit(traffic.Main(os.Stdin, os.Stdout, os.Stderr)) }
