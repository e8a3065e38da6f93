// Package lua holds the scripts, one operation a file. Each has its restatement
// in Go in package model, and a random differential test holds the two together.
//
// Rules for every script, with their reasons:
//
//   - It reads and type-checks every key first, then does the writes that may be
//     refused, then publishes, by pcall: an error must leave nothing half done.
//   - TIME is read once: Redis 7.0 does not freeze it within a script.
//   - The lock is read with GETEX, which a replica refuses, so no decision is
//     ever taken on a stale copy. It also counts as the script's first write,
//     after which a full memory refuses nothing: release and renewal work then
//     without the #!lua header that Redis 6.2 does not know. Acquiring a free
//     lock does not begin with it, so there a full memory is an error. A semaphore's
//     scripts drop what has ended first, so they run also then.
//   - Numbers are printed with %.0f: tostring keeps 14 digits.
//   - A fast path returns before any function is made: a closure costs
//     microseconds.
//   - It is idempotent by token: a library may send it twice.
package lua

import (
	"embed"
	"fmt"
	"strings"

	"github.com/zamok-go/zamok/driver"
)

//go:embed *.lua
var files embed.FS

// The scripts.
var (
	Acquire = script("acquire")
	Release = script("release")
	LetGo   = script("let_go")
	Renew   = script("renew")
	Resume  = script("resume")
	Inspect = script("inspect")
	Break   = script("break")

	// Several locks at once.
	MultiAcquire = script("multi_acquire")

	// The same lock taken by those who only read.
	ReadAcquire = script("read_acquire")
	Downgrade   = script("downgrade")

	// The same of a semaphore, which has several permits.
	SemAcquire = script("sem_acquire")
	SemRelease = script("sem_release")
	SemRenew   = script("sem_renew")
	SemLimit   = script("sem_limit")

	// Of those who have a permit, or read.
	Roll = script("roll")
	Mark = script("mark")
	Fate = script("fate")

	// Who a client is, and what happened; no lock is concerned.
	Announce = script("announce")
	Roster   = script("roster")
	Whois    = script("whois")
	Note     = script("note")
	Events   = script("events")

	// To which server process the data belong.
	Stamp = script("stamp")

	// At one member of a quorum.
	Vote    = script("vote")
	Confirm = script("confirm")
	Line    = script("line")
	Leave   = script("leave")
)

// All lists the scripts that stand alone, in the order in which one would read
// them.
func All() []*driver.Script {
	return []*driver.Script{Acquire, Release, LetGo, Renew, Resume, Inspect, Break, MultiAcquire, ReadAcquire, Downgrade, SemAcquire, SemRelease, SemRenew, SemLimit, Roll, Mark, Fate, Announce, Roster, Whois, Note, Events, Stamp, Vote, Confirm, Line, Leave}
}

// Guard wraps a caller's script: see guard.lua.
func Guard(name, source string) *driver.Script {
	return driver.NewScript("guard:"+name, strings.Replace(text("guard"), "-- BODY", source, 1))
}

// SemGuard wraps a caller's script that runs under a permit: see sem_guard.lua.
func SemGuard(name, source string) *driver.Script {
	return driver.NewScript("permit:"+name, strings.Replace(text("sem_guard"), "-- BODY", source, 1))
}

func script(name string) *driver.Script {
	return driver.NewScript(name, text(name))
}

// text returns the file with its fragments put in and without its comments,
// which the server would only have to skip.
func text(name string) string {
	raw, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("zamok: no script %q: %v", name, err)) // a name in this file is wrong; the tests would not start
	}
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		trimmed := strings.TrimSpace(line)
		if fragment, ok := strings.CutPrefix(trimmed, "-- INCLUDE: "); ok {
			b.WriteString(text(fragment))
			continue
		}
		if trimmed == "" || strings.HasPrefix(trimmed, "-- ") && trimmed != "-- BODY" {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}
