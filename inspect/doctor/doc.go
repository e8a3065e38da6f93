// Package doctor looks at a server and says what would make locks unsafe or slow
// on it, why, and what to do about it.
//
// It tells what can be seen from one connection in a few seconds: settings, the
// rights of the user, what the server has counted since it started, and how it
// answers. What it finds in order is in order now; a server can be reconfigured,
// fill up or fail over a minute later. It finds no fault of the network between
// the server and its replicas, and nothing that a cloud hides.
//
// It changes nothing. The commands of locks are tried in a form that has no
// effect (SET with XX on a key that is not there), under a random name; beside
// INFO and CONFIG GET it sends some dozens of short commands, and a walk over
// the keys that is bounded (Config.Keys).
package doctor
