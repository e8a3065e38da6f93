package proc

import (
	"encoding/json"
	"time"
)

// How many events are kept, and for how long after the last.
const (
	EventsKept = 1000
	EventsTTL  = 30 * 24 * time.Hour
)

// Event is one that happened to a lease: the text of an entry of the stream
// P + "zamok:events". Its time is the entry's.
type Event struct {
	Kind  string `json:"kind"` // see the kinds
	Name  Bytes  `json:"name"`
	Key   Bytes  `json:"key"`
	Token string `json:"token"` // of the lease; of a foreign holder its value
	Fence int64  `json:"fence,string"`

	Service string `json:"service,omitempty"` // of the holder, as far as the writer knows

	HeldMS int64  `json:"held_ms,omitempty"`
	By     string `json:"by,omitempty"`   // who broke it
	Now    bool   `json:"now,omitempty"`  // broken: taken away at once; else its holder was asked
	Why    string `json:"why,omitempty"`  // why it was broken; or the last failure of a renewal
	Next   string `json:"next,omitempty"` // token of who has it now, as far as is known
	More   int    `json:"more,omitempty"` // how many more there were, of which nothing is told
}

// The kinds of events.
const (
	Expired = "expired"  // its holder did not renew it in time
	Taken   = "taken"    // the key holds another token
	Deleted = "deleted"  // the key is gone before its time
	Broken  = "broken"   // an operator took it away, or asked its holder to stop
	MaxHold = "max-hold" // MutexConfig.MaxHold ended it
	Data    = "data"     // the server lost what it had
)

// Text returns the text of the entry.
func (e Event) Text() string {
	text, _ := json.Marshal(e)
	return string(text)
}

// ParseEvent reads an entry; false when it is none of ours.
func ParseEvent(text string) (Event, bool) {
	var e Event
	if json.Unmarshal([]byte(text), &e) != nil || e.Kind == "" {
		return Event{}, false
	}
	return e, true
}
