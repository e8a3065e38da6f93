// Package faults does harm to the servers of a deployment, to the ways to them and
// to the workers: one fault after the other in each of four lanes, and the lanes
// at the same time, so that faults come alone and together. Which, to whom, when
// and for how long follows from a seed; what happened is written down.
package faults
