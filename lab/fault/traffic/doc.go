// Package traffic is what worker processes do in a fault test: they take locks in all
// ways that there are, hold, look, renew, write to a register on the server and to one
// outside, release, give up in the middle of a wait, hand their leases on, and die, and
// write all of it into a history.
//
// What they do comes from a seed, when they do it from the machine: a seed that is
// played again is the same in its choices, not in its times.
package traffic
