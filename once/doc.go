// Package once does a thing that has a key: an e-mail, a payment, a webhook, a
// cron tick. It stores the outcome and gives it to whoever asks for the same key
// again.
//
// # What is promised
//
// Under the assumptions of package zamok (the server keeps its data, its clock is
// not stepped), and within the retention time that is configured:
//
//   - GiveUp: the function of a key is called at most once, whatever crashes and
//     whichever reply is lost, unless it says itself that nothing was done (Again).
//     A run that did not tell its end is never followed by another; the next call is
//     told of it by ErrInterrupted.
//   - Retry: the function is called until one call ends well. While a run's lease
//     lasts no other begins. The lease is renewed until the function returns, and
//     the function's context ends before the lease does.
//   - Both: an outcome is stored by the run whose lease the server has, in one step
//     with that question. A run that was superseded stores nothing.
//   - Once an outcome is stored, every call gets that outcome and runs nothing.
//
// # What cannot be promised
//
// Between the effect of a function (the mail is with the mail server) and the
// moment at which this is stored, the process can die, and nobody knows. There are
// two ways on, to risk that it was not done, or to risk that it is done again. The
// caller must choose (Config.Policy); there is no default, and no third way. What
// closes the gap is on the other side: Run.ID is the same for every run of a key,
// also after the server has lost everything, and a downstream service that takes
// such an id does not do it twice.
//
// When the server loses the record (a wipe, a restart without persistence, a
// failover to an older copy, an eviction) or the retention time has passed, nobody
// remembers that the thing was done, and it may be done again. A process that
// stands still for longer than its lease may, under Retry, act once more beside its
// successor when it wakes: Run.Fence is for that.
//
// docs/once.md has a table of what happens for a crash at each point.
//
// # How it works
//
// A run holds the lock "once/" + key, so that one run goes on at a time, others
// wait in order of arrival, and zamok ls shows it. The record beside the lock says
// running, done, failed or again. Guarded scripts alone write it, which run only
// under the lease of the lock: whoever has the lock and finds "running" knows that
// the run is over and did not tell its end.
package once
