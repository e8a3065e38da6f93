package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// The JSON forms. Fields are added, never renamed or taken away. Fences are
// strings: many readers of JSON keep 53 bits. Times are whole milliseconds.

type jsonLock struct {
	Kind    string        `json:"kind"` // lock, read-lock, semaphore
	Name    string        `json:"name"`
	Key     string        `json:"key"`
	Held    bool          `json:"held"`
	Holding int           `json:"holding"`
	Holders []jsonHolding `json:"holders"`       // at most 1,000
	Permits int           `json:"permits"`       // of a semaphore; 0 when not known
	Fixed   bool          `json:"permits_fixed"` // by zamok slots, for all who use it
	LeftMS  int64         `json:"left_ms"`       // until nobody has it, if nothing is renewed
	NoTTL   bool          `json:"no_ttl"`
	Waiting int           `json:"waiting"`
	Waiters []jsonWaiter  `json:"waiters"` // at most 1,000

	Deadlocks  []jsonDeadlock  `json:"deadlocks,omitempty"`  // of show
	Quarantine *jsonQuarantine `json:"quarantine,omitempty"` // of show
	Error      string          `json:"error,omitempty"`      // of ls
}

// jsonHolding is one who has the lock, and what is known of that.
type jsonHolding struct {
	jsonHolder
	Service  string      `json:"service"` // empty when not known
	Version  string      `json:"version"`
	Command  string      `json:"command"`
	UpMS     int64       `json:"up_ms"`
	Reason   string      `json:"reason"`
	Fence    string      `json:"fence"` // "0" when not known
	HeldMS   int64       `json:"held_ms"`
	LeftMS   int64       `json:"left_ms"`
	TTLMS    int64       `json:"ttl_ms"`  // 0 when not known
	LateMS   int64       `json:"late_ms"` // 0 when on time, or not known
	Detached bool        `json:"detached"`
	Silent   bool        `json:"silent"`
	Broken   *jsonBroken `json:"broken"` // null when nobody asked it to stop
}

// jsonHolder is who a token is of.
type jsonHolder struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Client  string `json:"client"`
	Token   string `json:"token"`
	Foreign bool   `json:"foreign"`
	Resting bool   `json:"resting"`
}

type jsonBroken struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

type jsonWaiter struct {
	Place    int        `json:"place"`
	Holder   jsonHolder `json:"waiter"`
	Wants    string     `json:"wants"` // write, read, permit
	Service  string     `json:"service"`
	Command  string     `json:"command"`
	WaitedMS int64      `json:"waited_ms"`
	TTLMS    int64      `json:"ttl_ms"`
	Alive    bool       `json:"alive"`
	Polls    bool       `json:"polls"`
	Under    []string   `json:"under"` // tokens of the leases under which it waits
}

type jsonDeadlock struct {
	Sure    bool         `json:"sure"`
	Members []jsonMember `json:"members"`
}

// jsonMember is a lock of a circle; its holder waits for the lock of the next
// member, and that of the last for the first's.
type jsonMember struct {
	Kind     string     `json:"kind"`
	Name     string     `json:"name"`
	Key      string     `json:"key"`
	Holder   jsonHolder `json:"holder"`
	Service  string     `json:"service"`
	Fence    string     `json:"fence"`
	HeldMS   int64      `json:"held_ms"`
	Place    int        `json:"place"` // in the queue of the next member's lock
	WaitedMS int64      `json:"waited_ms"`
	Sure     bool       `json:"sure"`
}

func jsonOf(l inspect.Lock) jsonLock {
	j := jsonLock{
		Kind: string(l.Kind), Name: l.Name, Key: l.Key, Held: l.Held, Holding: l.Holding, Holders: []jsonHolding{}, Permits: l.Permits,
		Fixed: l.Fixed, LeftMS: ms(l.Left), NoTTL: l.NoTTL, Waiting: l.Waiting, Waiters: []jsonWaiter{},
	}
	if l.Err != nil {
		j.Error = l.Err.Error()
	}
	for _, h := range l.Holders {
		j.Holders = append(j.Holders, jsonHoldingOf(h))
	}
	for _, w := range l.Waiters {
		j.Waiters = append(j.Waiters, jsonWaiterOf(l, w))
	}
	return j
}

func jsonWaiterOf(l inspect.Lock, w inspect.Waiter) jsonWaiter {
	return jsonWaiter{
		Place: w.Place, Holder: jsonHolderOf(w.Holder), Wants: wants(l, w), Service: w.Service, Command: w.Command,
		WaitedMS: ms(w.Waited), TTLMS: ms(w.TTL), Alive: w.Alive, Polls: w.Polls, Under: append([]string{}, w.Under...),
	}
}

func jsonHoldingOf(h inspect.Holder) jsonHolding {
	j := jsonHolding{
		jsonHolder: jsonHolderOf(h.Holder), Service: h.Service, Version: h.Version, Command: h.Command, UpMS: ms(h.Up), Reason: h.Reason,
		Fence: fenceText(h.Fence), HeldMS: ms(h.Since), LeftMS: ms(h.Left), TTLMS: ms(h.TTL), LateMS: ms(h.Late), Detached: h.Detached, Silent: h.Silent,
	}
	if h.Broken != nil {
		j.Broken = &jsonBroken{h.Broken.By, h.Broken.Why}
	}
	return j
}

func jsonDeadlockOf(d inspect.Deadlock) jsonDeadlock {
	j := jsonDeadlock{Sure: d.Sure}
	for _, m := range d.Members {
		j.Members = append(j.Members, jsonMember{
			Kind: string(m.Kind), Name: m.Name, Key: m.Key, Holder: jsonHolderOf(m.Holder), Service: m.Service, Fence: fenceText(m.Fence),
			HeldMS: ms(m.Since), Place: m.Waits.Place, WaitedMS: ms(m.Waits.Waited), Sure: m.Sure,
		})
	}
	return j
}

func jsonHolderOf(h zamok.Holder) jsonHolder {
	return jsonHolder{Host: h.Host, PID: h.PID, Client: h.Client, Token: h.Token, Foreign: h.Foreign, Resting: h.Resting}
}

func holderOrNull(h zamok.Holder) *jsonHolder {
	if h == (zamok.Holder{}) {
		return nil
	}
	j := jsonHolderOf(h)
	return &j
}

func fenceText(fence int64) string { return strconv.FormatInt(fence, 10) }

func ms(d time.Duration) int64 { return d.Milliseconds() }

// json prints one value in several lines.
func (a *app) json(v any) error { return a.jsonText(v, "", "  ") }

// jsonLine prints one value in one line.
func (a *app) jsonLine(v any) error { return a.jsonText(v, "", "") }

func (a *app) jsonText(v any, prefix, indent string) error {
	text, err := jsonBytes(v, prefix, indent)
	if err == nil {
		_, err = a.stdout.Write(text)
	}
	return a.written(err)
}

// jsonBytes ends with the end of the line.
func jsonBytes(v any, prefix, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	err := e.Encode(v)
	return printableJSON(b.Bytes()), err
}

// printableJSON escapes what steers a terminal and JSON lets pass: DEL, the second
// row of control characters, the marks that turn the direction of text. They can
// stand in strings alone.
func printableJSON(text []byte) []byte {
	odd := func(r rune) bool { return r > '~' && !unicode.IsPrint(r) && r != utf8.RuneError }
	if bytes.IndexFunc(text, odd) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !odd(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
