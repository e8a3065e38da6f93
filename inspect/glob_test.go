package inspect

import (
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"abc", "abc", true}, {"abc", "ab", false}, {"abc", "abcd", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"*", "", true}, {"*", "any/thing", true}, {"a*", "a", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "bab", false},
		{"a*b*c", "a-b-b-c", true}, {"a*b*c", "a-c-b", false}, {"**a**", "xax", true}, {"*ab", "aab", true}, {"*aab", "aaab", true},
		{"[abc]", "b", true}, {"[abc]", "d", false}, {"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[^a-c]", "b", false}, {"[^a-c]", "d", true},
		{"[^]", "x", true}, {"[]a]", "a]", false}, {"[]", "x", false}, {`[\]]`, "]", true}, {`[\a-c]`, "-", true}, {`[\a-c]`, "b", false},
		{"[abc", "c", true}, {"[a-", "-", true}, {"[a-", "b", false}, {"[", "[", false}, {"[^", "x", true},
		{`\*`, "*", true}, {`\*`, "x", false}, {`a\`, `a\`, true}, {`\\`, `\`, true}, {`\[a]`, "[a]", true},
		{"deploy-*", "deploy-web", true}, {"deploy-*", "deploy", false}, {"\xff?", "\xff\xfe", true}, {"[\x80-\xff]", "\xe4", true},
		{"", "", true}, {"", "a", false}, {"?", "", false}, {"a**", "a", true}, {"a*?", "a", false},
	} {
		if got := match(c.pattern, c.text); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

// slow is the definition, by trying everything: what * may take is any text.
func slow(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slow(pattern[1:], text) || text != "" && slow(pattern, text[1:])
	case text == "":
		return false
	}
	n, ok := matchOne(pattern, text[0])
	return ok && slow(pattern[n:], text[1:])
}

// TestMatchAll compares with the definition all short patterns on all short texts.
func TestMatchAll(t *testing.T) {
	words := func(alphabet string, most int) []string {
		list := []string{""}
		for n := 0; n < len(list); n++ {
			if len(list[n]) < most {
				for _, c := range alphabet {
					list = append(list, list[n]+string(c))
				}
			}
		}
		return list
	}
	texts := words("ab", 5)
	for _, pattern := range words(`ab*?[\`, 5) {
		for _, text := range texts {
			if got, want := match(pattern, text), slow(pattern, text); got != want {
				t.Fatalf("match(%q, %q) = %v", pattern, text, got)
			}
		}
	}
}

// A pattern that is made to take long does not.
func TestMatchIsFast(t *testing.T) {
	start := time.Now()
	if match(strings.Repeat("*a", 256)+"b", strings.Repeat("a", 512)) {
		t.Error("it matches")
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestEscape(t *testing.T) {
	for _, text := range []string{"", "a", `*?[a-z]^\`, "\xff{}"} {
		if p := escape(text); !match(p, text) || match(p, text+"x") || match(p, "x"+text) {
			t.Errorf("%q escaped is %q", text, p)
		}
	}
}
