// Package acl tries the rights that docs/guarantees.md lists: with them every
// feature works on a real server, with both drivers, and without any one of them
// something is refused that names what is missing.
package acl
