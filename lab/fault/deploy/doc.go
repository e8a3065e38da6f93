// Package deploy starts the servers of a fault test, and knows what zamok promises
// on each kind of them under which fault: the rows of docs/guarantees.md, as one
// table.
//
// The servers are those of drivertest, which belong to a test; a [Host] is one
// where there is none.
package deploy
