// Package validate looks for violations in a history. Each check is a function of the
// history alone and says what it saw, whatever the deployment promises; whether a
// violation is a bug or what docs/guarantees.md says can happen is for the caller to
// know.
//
// Most checks are sweeps over times and have no opinion about what happened in between.
// Two search, with Porcupine, for an order of all operations in which each could have
// had its outcome: those of a lock with expiry only when it is due, and those of
// the registers.
//
// Where a history does not tell what happened, a check supposes what is in favour of the
// lock: a hold lasts no longer than it was last seen to, and what has an
// unknown outcome was done if somebody saw it and not done if nobody did.
package validate
