// Package parts measures what zamok costs beside what one would write by hand, on
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
// Quorum compares three servers that decide together with one.
//
// Other benchmarks compare the kinds of leases with each other, or say what many of
// them cost: what the server's processor has of a cycle of each kind (ServerCPU),
// what a lease takes of memory (Memory), and what 100,000 leases cost that one
// process holds and renews for three TTLs (Held: a minute for each of its parts, and
// a machine that does nothing else).
//
//	go test -bench . ./bench/parts
//	go test -bench Held/goredis ./bench/parts
//
// Environment: ZAMOK_BENCH_LEASES is the number of leases of Held (100,000).
package parts
