package memory

import "strings"

// match is the pattern matching of SCAN: * ? [a-z] [^a-z] and \ before a
// character that is meant as it is. It differs from path.Match in that / is a
// character like any other, and that no pattern is wrong.
func match(pattern, s string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			rest := strings.TrimLeft(pattern, "*")
			for i := 0; i <= len(s); i++ {
				if match(rest, s[i:]) {
					return true
				}
			}
			return false
		case '[':
			if s == "" {
				return false
			}
			ok, rest := matchClass(pattern[1:], s[0])
			if !ok {
				return false
			}
			pattern, s = rest, s[1:]
			continue
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if s == "" || pattern[0] != s[0] {
				return false
			}
		default:
			if s == "" || pattern[0] != '?' && pattern[0] != s[0] {
				return false
			}
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// matchClass matches one character against what follows a "[", and returns what
// is behind the "]".
func matchClass(class string, c byte) (ok bool, rest string) {
	class, not := strings.CutPrefix(class, "^")
	found := false
	for class != "" && class[0] != ']' {
		if class[0] == '\\' && len(class) > 1 {
			class = class[1:]
		}
		low, high := class[0], class[0]
		class = class[1:]
		if len(class) > 1 && class[0] == '-' && class[1] != ']' {
			high = class[1]
			class = class[2:]
		}
		if low > high {
			low, high = high, low
		}
		found = found || low <= c && c <= high
	}
	return found != not, strings.TrimPrefix(class, "]")
}
