// Package history is what the processes of a fault test write down, and what the
// checkers read: who asked for what when, what came of it, and which faults there
// were meanwhile.
//
// Each process writes a file of its own, one JSON line at a time, each with one
// system call, because it may be killed at any moment: what was written before
// stays, and a last line that is torn is left out by the reader. Something that
// may change the server is written twice, before it is sent and when it returned,
// so that what a process had under way when it died is known.
//
// Stamps are nanoseconds of CLOCK_MONOTONIC, which all processes of a host share,
// so that those of different files compare.
package history
