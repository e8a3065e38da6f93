package zamokrueidis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

// result turns what a command has become into what a driver returns.
func result(r rueidis.RedisResult) (any, error) {
	msg, err := r.ToMessage()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, serverError(err)
	}
	return reply(&msg)
}

// serverError makes a *driver.ServerError of what the server said.
func serverError(err error) error {
	se, ok := rueidis.IsRedisErr(err)
	if !ok {
		return err
	}
	return &driver.ServerError{Text: withCode(se.Error())}
}

// withCode gives the server's text back its code "ERR ", which rueidis takes
// away. A code is one word of capitals; the words here begin messages that the
// server sends with ERR.
func withCode(text string) string {
	code, _, _ := strings.Cut(text, " ")
	switch code {
	case "", "ACL", "AUTH", "CLIENT", "DB", "DEBUG", "DISCARD", "EXEC", "HELLO", "MULTI", "WATCH":
		return "ERR " + text
	}
	for _, r := range code {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return "ERR " + text
		}
	}
	return text
}

// reply turns the types of RESP3 into those that RESP2 would have sent. An
// error within an array fails the whole: no script of ours returns one, and a
// string of its text could be taken for data.
func reply(m *rueidis.RedisMessage) (any, error) {
	switch {
	case m.IsNil():
		return nil, nil
	case m.IsString():
		return m.ToString()
	case m.IsInt64():
		return m.ToInt64()
	case m.IsArray():
		vs, err := m.ToArray()
		if err != nil {
			return nil, serverError(err)
		}
		return list(vs)
	}
	return rareReply(m)
}

func rareReply(m *rueidis.RedisMessage) (any, error) {
	if err := m.Error(); err != nil {
		return nil, serverError(err)
	}
	switch {
	case m.IsBool():
		if b, _ := m.ToBool(); b {
			return int64(1), nil
		}
		return int64(0), nil
	case m.IsFloat64():
		f, err := m.ToFloat64()
		return strconv.FormatFloat(f, 'g', -1, 64), err
	case m.IsMap():
		return pairs(m)
	}
	// What is left is a verbatim string, of which rueidis keeps the format that
	// stands before its text, or a number of any length.
	s, err := m.ToString()
	if err != nil {
		return nil, fmt.Errorf("zamokrueidis: %w", err)
	}
	if len(s) >= 4 && s[3] == ':' {
		s = s[4:]
	}
	return s, nil
}

func list(vs []rueidis.RedisMessage) (any, error) {
	out := make([]any, len(vs))
	for i := range vs {
		r, err := reply(&vs[i])
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

func pairs(m *rueidis.RedisMessage) (any, error) {
	byKey, err := m.ToMap()
	if err != nil {
		return nil, fmt.Errorf("zamokrueidis: %w", err)
	}
	out := make([]any, 0, 2*len(byKey))
	for key, value := range byKey {
		r, err := reply(&value)
		if err != nil {
			return nil, err
		}
		out = append(out, key, r)
	}
	return out, nil
}
