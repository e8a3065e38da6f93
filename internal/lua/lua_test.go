package lua

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/driver"
)

var update = flag.Bool("update", false, "write testdata/golden.txt anew")

// TestGolden shows a change of what is sent in a review: programs of two
// versions share locks, so it is a change of the protocol. A script is also
// cached by servers under the hash of its text.
func TestGolden(t *testing.T) {
	const file = "testdata/golden.txt"
	var got strings.Builder
	for _, s := range append(All(), Guard("name", "return 1"), SemGuard("name", "return 1")) {
		fmt.Fprintf(&got, "%s %x\n", s.Name(), sha256.Sum256([]byte(s.Source())))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the scripts changed, have\n%swant\n%sIf that is meant: go test ./internal/lua -update, and say in CHANGELOG.md whether old and new versions may run together.", got.String(), want)
	}
}

// TestAllAreListed: a file that is neither a script of All, nor the guard, nor a
// fragment would be tried by nothing.
func TestAllAreListed(t *testing.T) {
	var scripts []string
	for name, body := range sources(t) {
		if !strings.HasPrefix(body, "-- FRAGMENT: ") {
			scripts = append(scripts, name)
		}
	}
	want := []string{"guard", "sem_guard"}
	for _, s := range All() {
		want = append(want, s.Name())
	}
	slices.Sort(scripts)
	slices.Sort(want)
	if !slices.Equal(scripts, want) {
		t.Errorf("files %q, want %q", scripts, want)
	}
}

func TestHeaders(t *testing.T) {
	for name, raw := range sources(t) {
		if !strings.Contains(raw, "\n-- KEEPS: ") {
			t.Errorf("%s.lua: the header lacks KEEPS", name)
		}
		if strings.HasPrefix(raw, "-- FRAGMENT: ") {
			continue // its KEYS are those of the scripts that include it
		}
		if header(raw, "RETURNS") == "" {
			t.Errorf("%s.lua: the header lacks RETURNS", name)
		}
		checkList(t, name, header(raw, "KEYS"), "KEYS", text(name))
		checkList(t, name, header(raw, "ARGV"), "ARGV", text(name))
	}
}

// checkList compares a list of the header with what the text that is sent uses.
func checkList(t *testing.T, name, list, table, body string) {
	t.Helper()
	if list == "" {
		t.Errorf("%s.lua: the header lacks %s", name, table)
		return
	}
	var want []string
	for i, item := range splitList(list) {
		if !strings.Contains(item, "(not touched)") && !strings.HasPrefix(strings.TrimSpace(item), "then ") {
			want = append(want, fmt.Sprint(i+1))
		}
	}
	var got []string
	for _, m := range regexp.MustCompile(`\b`+table+`\[([^\]]*)\]`).FindAllStringSubmatch(body, -1) {
		if !slices.Contains([]string{"i", "most", "#KEYS"}, m[1]) && !slices.Contains(got, m[1]) { // a loop over "then the …", and what follows
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s.lua: the header lists %s %q, the body uses %q", name, table, want, got)
	}
}

// splitList splits at commas outside of parentheses.
func splitList(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}

// TestBodies holds the rules of the package's comment that a look at the text
// can hold.
func TestBodies(t *testing.T) {
	for _, s := range append(All(), Guard("name", "return 1"), SemGuard("name", "return 1")) {
		t.Run(s.Name(), func(t *testing.T) { checkBody(t, s) })
	}
}

var (
	commandPattern = regexp.MustCompile(`redis\.(p?call)\(('\w+'|[^,)]*)(?:, ([^,)]*))?`)
	nodePattern    = regexp.MustCompile(`\bnode, terms\b.* = .*\bKEYS\[`)
	concatPattern  = regexp.MustCompile(`([\w\])']+) \.\. ([\w'.]+)`)
)

// keyless are the commands that name no key.
var keyless = []string{"'TIME'", "'PUBSUB'", "'PUBLISH'", "'SPUBLISH'", "'INFO'", "'RANDOMKEY'"}

// texts are the variables and functions that hold strings for certain. Others
// may hold numbers, of which ".." keeps 14 digits.
var texts = []string{"token", "fence", "who", "inbox", "old", "new", "string.sub", "string.format", "me", "note", "run", "said", "terms"}

func checkBody(t *testing.T, s *driver.Script) {
	body := s.Source()
	if strings.Contains(body, "tostring") {
		t.Errorf("tostring keeps 14 digits of a number; use string.format(%q, n)", "%.0f")
	}
	for _, m := range commandPattern.FindAllStringSubmatch(body, -1) {
		switch {
		case !strings.HasPrefix(m[2], "'"):
			t.Errorf("%s: the command is not a literal", m[0])
		case strings.HasSuffix(m[2], "PUBLISH'") && m[1] != "pcall":
			t.Errorf("%s: it may be forbidden, and would then undo the reply but not the grant; use pcall", m[0])
		case !slices.Contains(keyless, m[2]) && !strings.HasPrefix(m[3], "KEYS[") && (m[3] != "node" || !nodePattern.MatchString(body)):
			t.Errorf("%s: the key does not come from KEYS", m[0])
		}
	}
	for _, m := range concatPattern.FindAllStringSubmatch(body, -1) {
		for _, operand := range m[1:] {
			known := strings.ContainsAny(operand, "'])") || strings.HasPrefix(operand, "ARGV") || slices.Contains(texts, operand)
			if !known {
				t.Errorf("%q: is %s a string? If it is, list it in this test", m[0], operand)
			}
		}
	}
	if regexp.MustCompile(`(?m)^\s*--`).MatchString(body) {
		t.Error("a line of comment is sent")
	}
}

// TestTimeIsReadOnce: on every way through a script. Each TIME but the last must
// stand in a block that returns, or be asked for only if it was not read before.
func TestTimeIsReadOnce(t *testing.T) {
	for _, s := range All() {
		parts := strings.Split(strings.ReplaceAll(s.Source(), "t = t or redis.call('TIME')", ""), "redis.call('TIME')")
		for _, between := range parts[1:max(1, len(parts)-1)] {
			if !regexp.MustCompile(`(?m)^  return .*\nend$`).MatchString(between) {
				t.Errorf("%s reads TIME again", s.Name())
			}
		}
	}
}

func header(raw, field string) string {
	for line := range strings.Lines(raw) {
		if v, ok := strings.CutPrefix(line, "-- "+field+": "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// sources returns the files by their names without ".lua".
func sources(t *testing.T) map[string]string {
	t.Helper()
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]string)
	for _, e := range entries {
		raw, err := files.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(e.Name(), path.Ext(e.Name()))] = string(raw)
	}
	return m
}
