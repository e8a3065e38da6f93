//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import "os"

// The hidden first arguments. Nothing but this package passes them.
const (
	argKeeper     = "__keep"
	argTrampoline = "__start"
	keeperName    = "lease-keeper" // argv[0] and comm of the keeper: not matched by pkill zamok
)

// Intercept runs the keeper or the trampoline if args, which are os.Args, ask
// for it, and then reports the code to exit with. main calls it before anything
// else: both must be up in a moment and must not read a configuration.
func Intercept(args []string) (code int, handled bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch args[1] {
	case argKeeper:
		return keep(os.Stdin, os.NewFile(keeperAckFD, "ack")), true
	case argTrampoline:
		return trampoline(args[2:]), true
	}
	return 0, false
}
