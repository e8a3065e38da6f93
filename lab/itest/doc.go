// Package itest tries what users of other lock tools reported, one test a case,
// with the whole of zamok: the engine, both drivers on the default options of
// their clients, a real server, a proxy that breaks connections at an exact
// point, and processes that are really stopped and killed.
//
// The cases and their numbers are those of the project's list of field cases.
// Those of mutexes are also tried beside Sentinel and in a cluster (everywhere).
// Orders ("before", "never") are asserted exactly. A duration is what a user
// should see on a quiet machine, and is asserted with a factor of five.
//
// Environment:
//
//	ZAMOK_ITEST_LOCKS      how many locks one process holds in case 13 (20,000)
//	ZAMOK_ITEST_LOCKS_TTL  and their TTL (3s for every 10,000, or more on a slow machine)
//	ZAMOK_ITEST_NAMES      how many names have a holder and a waiter each (10,000)
//	ZAMOK_ITEST_HANDOVERS  how often two writers hand over in case 30 (10,000)
//	ZAMOK_ITEST_CROWD      how long the crowd of case 31 goes on (20s)
//	ZAMOK_ITEST_FAULTS     how long random faults go on (15s)
package itest
