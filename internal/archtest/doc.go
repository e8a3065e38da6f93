// Package archtest holds the rules of this repository that no compiler checks, as
// tests: who may import whom, what a source file may contain, how large the public
// face is, and that the documents agree with the code.
//
// Each rule is a function from a file to the complaints about it, so that a table
// of bad files can show that it complains. The files are parsed in process; go
// list in a child process would be cached by go test against changes.
package archtest
