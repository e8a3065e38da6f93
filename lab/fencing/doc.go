// Package fencing tries what docs/fencing.md shows: a resource that refuses the
// late write of an old holder, as a SQL statement on a real database and as a
// guarded Lua script on a real Redis server.
package fencing
