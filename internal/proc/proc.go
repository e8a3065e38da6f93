// Package proc is the form in which a client says who it is: the text of the key
// P + "zamok:proc:{all}:" + id.
//
// The names of its fields are short, because a client with many leases writes
// them all again at every change.
package proc

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Most is how many leases, and how many waits, a text names at most: those that
// have lasted longest. Beyond, it tells only how many there are.
const Most = 20000

// Record is what a client says of itself.
type Record struct {
	Service string `json:"service"`
	Version string `json:"version,omitempty"`
	Command string `json:"command,omitempty"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	UpMS    int64  `json:"up_ms"`  // since the client was made
	TTLMS   int64  `json:"ttl_ms"` // of this text, so that its end tells when it was written

	// Left: the client is closed. What is listed was detached, and is watched by
	// nobody.
	Left bool `json:"left,omitempty"`

	Holding int     `json:"holding"` // in all
	Waiting int     `json:"waiting"`
	Held    []Lease `json:"held,omitempty"`
	Waits   []Wait  `json:"waits,omitempty"`
}

// Find returns the lease with that token. start is what all tokens of the client
// begin with.
func (r Record) Find(start, token string) (Lease, bool) {
	short := Short(start, token)
	for _, l := range r.Held {
		if l.Token == short {
			return l, true
		}
	}
	return Lease{}, false
}

// Lease is one that a client holds or gave away.
type Lease struct {
	Name   Bytes  `json:"n"`
	Key    Bytes  `json:"k,omitempty"` // of a lock that has its own: MutexConfig.Key
	Token  string `json:"t"`           // without what all tokens of this client begin with
	TTLMS  int64  `json:"l"`
	Reason string `json:"r,omitempty"`
	Given  bool   `json:"d,omitempty"` // detached: nobody renews it

	// Of one that several share, whose key does not tell it.
	Fence   int64 `json:"f,omitempty"`
	Permits int   `json:"p,omitempty"` // how many there are, as far as this client was told
}

// Wait is one who stands in a queue.
type Wait struct {
	Name  Bytes    `json:"n"`
	Key   Bytes    `json:"k,omitempty"`
	Token string   `json:"t"`
	Under []string `json:"u,omitempty"` // tokens of the leases under which it waits

	Permits int `json:"p,omitempty"`
}

// Bytes is text that need not be UTF-8, which JSON cannot carry as it is: such a
// one becomes an object with the base64 of its bytes.
type Bytes string

// MarshalJSON writes a string, or {"b": base64}.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return json.Marshal(string(b))
	}
	return json.Marshal(struct {
		B []byte `json:"b"`
	}{[]byte(b)})
}

// UnmarshalJSON reads either.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(b))
	}
	var raw struct {
		B []byte `json:"b"`
	}
	err := json.Unmarshal(text, &raw)
	*b = Bytes(raw.B)
	return err
}

// Text returns the text of the key.
func (r Record) Text() string {
	text, _ := json.Marshal(r) // strings and numbers: it cannot fail
	return string(text)
}

// Parse reads a key's text; false when it is none of ours, or empty.
func Parse(text string) (Record, bool) {
	var r Record
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}, false
	}
	return r, true
}

// Short takes off a token what all tokens of the client begin with: the mark of
// tokens, its id, and a slash. Whole turns it back.
func Short(start, token string) string {
	if rest, ok := strings.CutPrefix(token, start); ok && rest != "" && !strings.Contains(rest, "/") {
		return rest
	}
	return token
}

// Whole is the token that Short made shorter: one has slashes.
func Whole(start, short string) string {
	if strings.Contains(short, "/") {
		return short
	}
	return start + short
}
