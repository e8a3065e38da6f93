// Package acl tries the rights that docs/guarantees.md lists and `zamok doctor`
// prints: with them every feature works on a real server, with both drivers, and
// without any one of them something is refused that names what is missing, which
// the doctor names too.
package acl
