// Package proc is the form in which a client says who it is: the text of the key
// P + "zamok:proc:" + id.
package proc

import "encoding/json"

// Record is what a client says of itself.
type Record struct {
	Service string            `json:"service"`
	Host    string            `json:"host"`
	PID     int               `json:"pid"`
	Reasons map[string]string `json:"reasons,omitempty"` // by token, of leases that have one
}

// Text returns the text of the key.
func (r Record) Text() string {
	text, _ := json.Marshal(r) // strings and a number: it cannot fail
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
