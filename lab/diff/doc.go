// Package diff holds the scripts of package lua and their restatement in
// package model together: random operations go to a real server and to the
// model, and every reply, every key and every message must agree.
//
// The server's clock is ours. A small library put before it (package skew)
// answers its questions for the time out of a file, so time stands still unless
// an operation moves it, and expiry, also at the very millisecond, is exact and
// repeatable. Nothing is compared with a tolerance.
//
// Operations come in histories of a thousand that begin with an empty server. A
// history that fails is repeated with ever fewer operations, and the shortest
// one that still fails is printed.
//
// Environment: ZAMOK_DIFF_OPS is the number of operations (200,000),
// ZAMOK_DIFF_SEED the seed (random, and printed by a failure).
package diff
