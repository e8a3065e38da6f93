package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promises are what this project must not say of itself, since it is not true of
// any lock service. A document may quote one, in "double quotes", to say that it
// is not promised.
var promises = []string{
	"guaranteed mutual exclusion", "guarantees mutual exclusion", "exactly once", "no split brain", "no split-brain",
	"safe across failover", "lock is held until you release it", "redlock is safe", "proven safe", "jepsen-tested",
}

func promiseComplaints(name, text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var complaints []string
	for _, p := range promises {
		for rest, found := text, true; found; {
			var before string
			before, rest, found = strings.Cut(rest, p)
			if found && !(strings.HasSuffix(before, `"`) && strings.HasPrefix(rest, `"`)) {
				complaints = append(complaints, fmt.Sprintf("%s promises %q", name, p))
			}
		}
	}
	return complaints
}

// comments returns what a Go file says to people.
func comments(f *goFile) string {
	var b strings.Builder
	for _, c := range f.syntax.Comments {
		b.WriteString(c.Text() + "\n")
	}
	return b.String()
}

func TestPromises(t *testing.T) {
	for _, name := range repoFiles(t, ".md") {
		report(t, promiseComplaints(name, read(t, name)))
	}
	for _, f := range goFiles(t) {
		if f.dir() != "internal/archtest" {
			report(t, promiseComplaints(f.path, comments(f)))
		}
	}
	for text, bad := range map[string]bool{
		"zamok gives guaranteed mutual exclusion": true,
		"Exactly\nonce delivery":                  true,
		`it does not promise "exactly once"`:      false,
		`"exactly once" and then exactly once`:    true,
		"one holder within its validity":          false,
	} {
		if got := promiseComplaints("a.md", text); (len(got) > 0) != bad {
			t.Errorf("%q: complaints %q, want some: %v", text, got, bad)
		}
	}
}

// link finds [text](target), and not in code.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

var codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// heading finds the headings of a document, which are targets of links.
var heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)

// anchor makes of a heading what GitHub makes of it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r > 127 || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// linkComplaints holds every link within the repository to what exists. content
// returns the text of a file, or an error.
func linkComplaints(name, text string, content func(name string) (string, error)) []string {
	var complaints []string
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
		target, fragment, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		there, err := content(file)
		if err != nil {
			complaints = append(complaints, fmt.Sprintf("%s links to %s, which is not there", name, m[1]))
			continue
		}
		if fragment == "" {
			continue
		}
		found := slices.ContainsFunc(heading.FindAllStringSubmatch(there, -1), func(h []string) bool { return anchor(h[1]) == fragment })
		if !found {
			complaints = append(complaints, fmt.Sprintf("%s links to %s, which has no such heading", name, m[1]))
		}
	}
	return complaints
}

func TestLinks(t *testing.T) {
	content := func(name string) (string, error) {
		full := filepath.Join(repo, filepath.FromSlash(name))
		info, err := os.Stat(full)
		if err != nil || info.IsDir() {
			return "", err
		}
		b, err := os.ReadFile(full)
		return string(b), err
	}
	for _, name := range repoFiles(t, ".md") {
		report(t, linkComplaints(name, read(t, name), content))
	}
	there := func(name string) (string, error) {
		if name != "docs/a.md" {
			return "", os.ErrNotExist
		}
		return "# One thing: `x`, and more\n", nil
	}
	for text, bad := range map[string]bool{
		"[a](docs/a.md)":                        false,
		"[a](docs/a.md#one-thing-x-and-more)":   false,
		"[a](docs/a.md#two)":                    true,
		"[a](docs/b.md)":                        true,
		"`[a](docs/b.md)`":                      false,
		"```go\nx[i](docs/b.md)\n```":           false,
		"[a](https://example.com/b.md#nothing)": false,
	} {
		if got := linkComplaints("README.md", text, there); (len(got) > 0) != bad {
			t.Errorf("%q: complaints %q, want some: %v", text, got, bad)
		}
	}
}

// block finds the fenced blocks of a language.
var block = regexp.MustCompile("(?ms)^```(go|sql|lua)\n(.*?)^```")

// flat makes code comparable whatever its indentation.
func flat(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		if line := strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// untested returns the code of a document that stands in no test: what a reader
// copies must have been compiled and run.
func untested(name, text string, tests []string) []string {
	var complaints []string
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		code := flat(m[2])
		if !slices.ContainsFunc(tests, func(test string) bool { return strings.Contains(test, code) }) {
			complaints = append(complaints, fmt.Sprintf("%s shows %s code that stands in no test:\n%s", name, m[1], code))
		}
	}
	return complaints
}

func TestCodeInDocuments(t *testing.T) {
	var tests []string
	for _, name := range repoFiles(t, "_test.go") {
		tests = append(tests, flat(read(t, name)))
	}
	for _, name := range repoFiles(t, ".md") {
		report(t, untested(name, read(t, name), tests))
	}
	for text, bad := range map[string]bool{
		"```go\nf()\n  g()\n```\n": false,
		"```go\nh()\n```\n":        true,
		"```sh\nh()\n```\n":        false,
	} {
		if got := untested("a.md", text, []string{flat("\tf()\n\tg()\n")}); (len(got) > 0) != bad {
			t.Errorf("%q: complaints %q, want some: %v", text, got, bad)
		}
	}
}

// headers returns the lines of a script that are part of the protocol.
func headers(script string) []string {
	var lines []string
	for line := range strings.Lines(script) {
		for _, mark := range []string{"-- KEYS: ", "-- ARGV: ", "-- RETURNS: "} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				lines = append(lines, strings.TrimSpace(mark[3:]+rest))
			}
		}
	}
	return lines
}

// TestProtocolDocument: whoever ports zamok to another language reads
// docs/protocol.md, so each script's own header must stand there word for word.
func TestProtocolDocument(t *testing.T) {
	doc := read(t, "docs/protocol.md")
	for _, name := range repoFiles(t, ".lua") {
		if path.Dir(name) != "internal/lua" {
			continue
		}
		script := read(t, name)
		lines := headers(script)
		if len(lines) != 3 && !strings.HasPrefix(script, "-- FRAGMENT:") {
			t.Errorf("%s has the header lines %q, want one each of KEYS, ARGV and RETURNS", name, lines)
		}
		for _, line := range lines {
			if !strings.Contains(doc, line) {
				t.Errorf("docs/protocol.md lacks a line of %s: %s", name, line)
			}
		}
		if !strings.Contains(doc, path.Base(name)) {
			t.Errorf("docs/protocol.md does not mention %s", path.Base(name))
		}
	}
}

// TestReadmeFits: what, the promise, the commands and the code come first, within
// one screen.
func TestReadmeFits(t *testing.T) {
	const screen = 60
	readme := read(t, "README.md")
	at := 0
	for _, want := range []string{"# zamok", "promise", "go run ./cmd/zamok demo", "make test", "```go"} {
		i := strings.Index(readme[at:], want)
		if i < 0 {
			t.Fatalf("README.md lacks %q, or has it before what should come first", want)
		}
		at += i
	}
	if n := strings.Count(readme[:at], "\n"); n > screen {
		t.Errorf("the code of README.md begins in line %d, want it within %d", n, screen)
	}
}
