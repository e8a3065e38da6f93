// Package broken has locks that are wrong on purpose, each in one way that locks on
// Redis were wrong before. The checkers must see it when such a lock is played under
// the fault that brings it out; and they must not see it when the lock without the
// flaw is played under the same fault.
//
// The lock without a flaw is small and slow: it polls, is not renewed by itself, and
// knows mutexes and semaphores alone. Nobody should use it.
package broken
