package drivertest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// goroutines returns the stacks of all goroutines by their number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		stacks[id] = stack
	}
	return stacks
}

// running says whether a function is on the stack of any goroutine.
func running(function string) bool {
	for _, stack := range goroutines() {
		if strings.Contains(stack, function) {
			return true
		}
	}
	return false
}

// checkLeaks fails the test if a goroutine that was not there before does not
// end. It waits, because a library may need up to its own limits to let go of a
// call that was given up.
func checkLeaks(t testing.TB, before map[string]string) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := []string{}
		for id, stack := range goroutines() {
			if before[id] == "" && !ofTest(stack) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("%d goroutines are left:\n\n%s", len(left), strings.Join(left, "\n\n"))
			return
		}
	}
}

// ofTest is true of goroutines that are not what a case is about: subtests, and
// those that belong to a server that was started again.
func ofTest(stack string) bool {
	return strings.Contains(stack, "testing.(*T).Run(") || strings.Contains(stack, "os/exec.(*Cmd)")
}
