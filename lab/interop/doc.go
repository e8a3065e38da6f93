// Package interop shares locks with other libraries by their key, each with the
// real library on a real server: zamok's MutexConfig.Key is a promise about
// programs that are not ours. docs/migration.md says what follows for those who
// move, and no more than what is tried here.
//
// The other side is always a process of its own, so that it can be killed in the
// middle: this test binary again for the libraries in Go, and the programs in
// testdata for Python, node and redis-cli. A process is given the server's
// address, reads one order a line and answers each with one word:
//
//	try KEY MS       take the lock, do not wait: yes or no
//	lock KEY MS      wait for it as the library does: yes
//	release KEY      yes, no (it was not mine), or silent (the library does not tell)
//	extend KEY MS    the same
//	count KEY ID     until there is a key "stop": lock, read a counter, think, write it, release: yes
//
// MS is the lock's TTL. The libraries for node are fetched by npm when a test
// first needs them, into the user's cache folder, as testdata/package-lock.json
// pins them.
package interop
