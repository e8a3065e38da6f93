// Package inspect looks at locks without touching them: who holds one, since
// when, what is left, and who waits in which order.
//
// What it tells was true at one moment on the server, the moment of each
// script's run, and may be over when it is read. So it serves people, dashboards
// and alarms. It is never a reason to act as if one held a lock, or as if nobody
// did: only acquiring it tells that.
//
// Times come from the server's clock alone: a fence is the server's time of the
// grant in microseconds, a waiter's ticket that of its arrival, and each reply
// carries the server's time now.
package inspect
