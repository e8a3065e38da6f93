// Package child runs a command under a lease and sees to it that the command
// ends before the lease does.
//
// # The promise
//
// When the lease is lost, and also when zamok is killed (kill -9), stopped
// (SIGSTOP, Ctrl-Z), hung, or asleep with the machine, no process of the
// command's process group is alive at the lease's deadline. The command does not
// run for a moment, not for its first instruction, without somebody who can stop
// it. When Run returns, the group is gone, so that the lease can be released.
//
// # How
//
//	zamok ──┬── keeper      own session; told over a pipe how much time is left
//	        └── command     own process group; begins as a trampoline that waits
//
// The keeper is this binary started again. It is told the time left each time
// the lease is renewed. When the pipe ends, zamok is dead: it kills the group at
// once. When it hears nothing and the time runs out, it sends TERM to the group
// KillAfter before the deadline and KILL before the deadline. The trampoline is
// this binary too: it becomes the command (execve) after the keeper has confirmed
// that it knows the group; if zamok dies before that, it reads an end of file
// and exits. If the keeper dies, zamok starts another; if that fails three times,
// zamok stops the command.
//
// # Who dies with the lease
//
//   - the command's process group, whoever the parents are;
//   - on Linux also those who left the group but stayed in the session (timeout(1),
//     the jobs of a shell with job control), known by a random mark in their
//     environment, and all descendants of these and of the group.
//
// When the command ends by itself, what it left behind in these sets gets TERM,
// and KILL after KillAfter, before Run returns: a `cmd &` at the end of a script
// would otherwise work on without the lock.
//
// # What is not covered
//
//   - A daemon: a process that has left the session (setsid) and whose parent has
//     exited. Leaving both is how a program says that it wants to outlive its caller.
//   - On systems other than Linux, any process that has left the group.
//   - Processes of another user (sudo, setuid) that zamok may not signal.
//   - A process in an uninterruptible system call dies when that call returns.
//   - kill -9 on zamok and its keeper both. The keeper's name is lease-keeper, so
//     `pkill -9 zamok` does not match it.
//   - Signals other than INT, HUP and, with INT, QUIT that were ignored when zamok
//     was started are at their default in the command: Go's runtime has replaced
//     the disposition before main runs.
package child
