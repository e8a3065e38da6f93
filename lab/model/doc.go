// Package model checks small models of the protocol, written in Promela, with
// the model checker spin: lock.pml (acquire, queue, hand-over, renewal), loss.pml
// (a server that loses data; quarantine and fences), quorum.pml (three nodes and time)
// and writeback.pml (their fences).
// Every state within the bounds is visited. The header of each file says which
// script each of its steps stands for and what is left out.
//
// The naive variants of each model are checked too, and a violation must be found
// in each: a model that finds none there would say nothing.
//
// It needs spin and a C compiler, which scripts/setup installs.
//
// Environment: ZAMOK_MODELS=big adds larger bounds (make model).
package model
