package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/internal/lua"
)

// What docs/guarantees.md shows is what Rights returns, word for word.
func TestRightsInDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```text\nACL SETUSER app on >PASSWORD (.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/guarantees.md has no block that begins with ACL SETUSER app on >PASSWORD")
	}
	if got := strings.Fields(string(m[1])); !slices.Equal(got, Rights("")) {
		t.Errorf("docs/guarantees.md has\n%q, want\n%q", got, Rights(""))
	}
	for _, rule := range slices.Concat(RightsToLook(), RightsInCluster()) {
		if !strings.Contains(string(text), "`"+rule+"`") {
			t.Errorf("docs/guarantees.md does not mention %s", rule)
		}
	}
}

// Every command that a script of zamok runs is among the rights, so that a new one
// cannot be forgotten.
func TestRightsOfScripts(t *testing.T) {
	quarantine := []string{"+info", "+randomkey"} // which few have: docs/guarantees.md
	call := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	numsub := regexp.MustCompile(`'([A-Z]*NUMSUB)'`) // the part of PUBSUB is chosen where it is called
	rights := slices.Concat(Rights(""), RightsInCluster())
	for _, s := range append(lua.All(), lua.Guard("none", ""), lua.SemGuard("none", "")) {
		var rules []string
		for _, m := range call.FindAllStringSubmatch(s.Source(), -1) {
			if m[1] != "PUBSUB" {
				rules = append(rules, "+"+strings.ToLower(m[1]))
			}
		}
		for _, m := range numsub.FindAllStringSubmatch(s.Source(), -1) {
			rules = append(rules, "+pubsub|"+strings.ToLower(m[1]))
		}
		for _, rule := range rules {
			if !slices.Contains(rights, rule) && !slices.Contains(quarantine, rule) {
				t.Errorf("%v needs %s, which no right is", s, rule)
			}
		}
	}
}

// Every right is tried, but those without which nothing could be tried.
func TestRightsAreTried(t *testing.T) {
	elsewhere := []string{"+hello", "+ping", "+subscribe", "+unsubscribe", "+evalsha", "+eval", "+script|load", "+ssubscribe", "+sunsubscribe"}
	for _, n := range slices.Concat(needs, needsInCluster) {
		rule := ""
		if n.try != nil {
			rule = "+" + strings.ToLower(n.try[0])
		}
		if rule == "+pubsub" {
			rule += "|" + strings.ToLower(n.try[1])
		}
		if n.rule != rule && !slices.Contains(elsewhere, n.rule) {
			t.Errorf("%s is tried by %q", n.rule, n.try)
		}
		if n.severity != Warning && n.severity != Critical || n.without == "" {
			t.Errorf("%s: its lack is %s: %q", n.rule, n.severity, n.without)
		}
	}
	// A full memory refuses the first write of a script alone, so SET must be it.
	set := slices.IndexFunc(needs, func(n need) bool { return n.rule == "+set" })
	for i, n := range needs {
		if i < set && slices.Contains([]string{"+getex", "+del", "+pexpire"}, n.rule) {
			t.Errorf("%s is tried before SET", n.rule)
		}
	}
}

func TestPatterns(t *testing.T) {
	for prefix, want := range map[string]string{
		"":          "~lock:* ~semaphore:* ~zamok:* &zamok:*",
		"app:":      "~app:* &app:*",
		"{app}:":    "~{app}:* &{app}:*",
		"a*[b]?\\^": `~a\*\[b\]\?\\\^* &a\*\[b\]\?\\\^*`,
		"a b\t\"'":  "~a?b???* &a?b???*",
		"é\xff\x01": "~é??* &é??*",
	} {
		rules := Rights(prefix)
		end := slices.Index(rules, "+hello")
		if got := strings.Join(rules[3:end], " "); got != want {
			t.Errorf("%q: %s, want %s", prefix, got, want)
		}
		for _, rule := range rules {
			if strings.ContainsAny(rule, " \t\n'\"") || rule == "" {
				t.Errorf("%q: the rule %q is not one word", prefix, rule)
			}
		}
	}
}

// docs/doctor.md has every check, and no other.
func TestChecksInDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| check |")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, m[1])
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Check: +"([a-z]+)"`).FindAllStringSubmatch(string(source), -1) {
			used = append(used, m[1])
		}
	}
	slices.Sort(documented)
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(documented, used) {
		t.Errorf("docs/doctor.md has the checks\n%q, the program\n%q", documented, used)
	}
}
