package inspect

import "strings"

// match says whether text matches a pattern of Redis (KEYS, SCAN): * ? [a-z]
// [^a-z] and a backslash before a byte that is meant as itself. No pattern is
// wrong; it differs from path.Match in that and in that / is a byte like any other.
//
// Every element but * takes one byte, so that when the text does not go on as the
// pattern does, giving one more byte to the last * is the only choice that need be
// tried: what an earlier * could give it, it has taken already. So the time is at
// most the product of the two lengths, whatever stands in the pattern.
func match(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // where the pattern goes on behind the last *, and the text
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, from = p, t
			continue
		}
		if n, ok := matchOne(pattern[p:], text[t]); ok {
			p, t = p+n, t+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, t = star, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one byte against the first element of the pattern, and returns
// how long that is.
func matchOne(pattern string, c byte) (length int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchClass matches one byte against a class, which begins with [ and ends behind
// its ], or, as on the server, with the pattern.
func matchClass(pattern string, c byte) (length int, ok bool) {
	n := 1
	not := strings.HasPrefix(pattern[n:], "^")
	if not {
		n++
	}
	for ; n < len(pattern) && pattern[n] != ']'; n++ {
		low, high := pattern[n], pattern[n]
		switch {
		case low == '\\' && n+1 < len(pattern):
			n++
			low, high = pattern[n], pattern[n]
		case n+2 < len(pattern) && pattern[n+1] == '-':
			high = pattern[n+2]
			n += 2
		}
		if low > high {
			low, high = high, low
		}
		ok = ok || low <= c && c <= high
	}
	return min(n+1, len(pattern)), ok != not
}

// escape makes text match only itself in a pattern.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]\^`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
