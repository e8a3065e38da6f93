package zamok

import "time"

// Trace is a set of hooks, each optional, called in the course of a lock's life:
// enough for metrics of waiting, holding, renewal, hand-over and loss. They are
// called from the goroutine concerned, must be quick, and must not call the
// client. The same hook may run in several goroutines at once.
type Trace struct {
	// Waiting: the caller stands in the queue; again at every later look.
	Waiting func(WaitingInfo)
	// Acquired: the caller has the lock.
	Acquired func(AcquiredInfo)
	// NotAcquired: a call ended without it.
	NotAcquired func(name string, waited time.Duration, err error)
	// Renewed: a renewal was answered, or failed and will be tried again.
	Renewed func(RenewedInfo)
	// Lost: a lease was lost. Its context has ended. It may run within a call of
	// Err of the lease or its context.
	Lost func(*LostError)
	// Released: Release was called; ReleasedInfo.Err says with what result.
	Released func(ReleasedInfo)
	// Subscription: the subscription that wakes waiters changed; err is nil when
	// it is up.
	Subscription func(err error)
}

// WaitingInfo says how a waiter stands.
type WaitingInfo struct {
	Name   string
	Place  int           // from 1
	Waited time.Duration // so far
	Held   *HeldError    // who holds
}

// AcquiredInfo says how a lock was acquired.
type AcquiredInfo struct {
	Name       string
	Fence      int64
	Waited     time.Duration // from the call to now
	HandedOver bool          // by its last holder's release, in one trip
}

// RenewedInfo says how a renewal went.
type RenewedInfo struct {
	Name string
	Took time.Duration
	Left time.Duration // what is left of the lease now
	Err  error         // why it will be tried again
}

// ReleasedInfo says how a release went.
type ReleasedInfo struct {
	Name       string
	Held       time.Duration
	HandedOver bool  // to a waiter
	Err        error // what Release returned
}
