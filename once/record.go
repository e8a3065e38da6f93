package once

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/token"
)

// What a record can say of a key. Absent stands for: nothing is remembered.
const (
	running = "running" // a run began; under the lock of the key, that it is over and nobody knows how
	done    = "done"
	failed  = "failed" // for good: it is replayed
	again   = "again"  // the next call runs it
)

// format is the version of what stands under a record's key.
const format = 1

// record is what is remembered of a key. Scripts compare it as a whole, so that
// nothing but this file knows what it looks like.
type record struct {
	Format  int             `json:"v"`
	State   string          `json:"state"`
	Policy  Policy          `json:"policy"`
	Attempt int             `json:"attempt"`         // of the run, from 1
	Fence   int64           `json:"fence"`           // of the run's lease
	Token   string          `json:"token"`           // of the run's lease
	Input   string          `json:"input,omitempty"` // fingerprint
	Value   json.RawMessage `json:"value,omitempty"` // of done
	Error   string          `json:"error,omitempty"` // of failed and again
}

func (r *record) text() (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}

// parse reads a record; nil when the text is empty: nothing is remembered.
func parse(text string) (*record, error) {
	if text == "" {
		return nil, nil
	}
	var r record
	err := json.Unmarshal([]byte(text), &r)
	known := r.State == running || r.State == done || r.State == failed || r.State == again
	if err != nil || r.Format != format || !known {
		return nil, unknownForm(text)
	}
	return &r, nil
}

// began is when the run's lease was granted, by the server's clock: a fence is
// that, or a little more.
func (r *record) began() time.Time { return time.UnixMicro(r.Fence) }

// holderOf is who had a lease.
func holderOf(text string) zamok.Holder {
	h, _ := token.Parse(text)
	return zamok.Holder(h)
}

func unknownForm(text string) error {
	return fmt.Errorf("what is remembered is of no form that this version knows (%.60q): another program wrote it, or a newer version of zamok", text)
}
