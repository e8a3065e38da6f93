// Package bench measures what zamok costs beside what one would write by hand, on
// the same client library and the same server, in one run.
//
// Variants take turns in short blocks, so that a noisy machine is as noisy for
// each of them, and the medians of the blocks are reported:
//
//	raw      SET NX PX and a compare-and-delete script, on the client library
//	scripts  zamok's scripts through zamok's driver, without the engine
//	zamok    Mutex.Lock and Lease.Release
//
// A cycle of raw has no fence, no queue and no renewal.
//
//	go test -bench . ./bench
package bench
