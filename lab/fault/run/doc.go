// Package run plays campaigns: it starts a deployment and the processes that use it,
// has faults done to both, waits until all is whole again, and has the history of it
// checked. What is found is a violation where docs/guarantees.md promises otherwise,
// and is expected where it does not.
package run
