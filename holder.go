package zamok

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/zamok-go/zamok/internal/token"
)

// What a token begins with: see package token.
const (
	tokenMark = token.Mark
	restMark  = token.RestMark
)

// Holder is who has a lock, as far as its value tells.
type Holder struct {
	Host    string
	PID     int
	Client  string // the client's id, HOST/PID/RANDOM
	Token   string // whole; of a foreign holder its whole value, at most 256 bytes of it
	Foreign bool   // another program's value under this key: respected, waited for, not understood
	Resting bool   // nobody holds the lock any more, it stays taken until MinHold is over
	Readers bool   // readers hold it, one or several; nothing else is known
}

func (h Holder) String() string {
	switch {
	case h.Foreign:
		return fmt.Sprintf("a foreign program (value %.40q)", h.Token)
	case h.Readers:
		return "readers"
	case h.Token == "":
		return "nobody"
	}
	return fmt.Sprintf("%s pid %d", h.Host, h.PID)
}

// parseValue takes the value of a lock apart. What is not ours is foreign.
func parseValue(v string) (Holder, int64) {
	h, fence := token.ParseValue(v)
	return Holder(h), fence
}

// isReaders says whether the value of a lock is its readers'.
func isReaders(value string) bool { return strings.HasPrefix(value, token.ReadMark) }

// parseToken reads a token; false when it is none of ours.
func parseToken(text string) (Holder, bool) {
	h, ok := token.Parse(text)
	return Holder(h), ok
}

// newID draws the id of a client. The pid alone would repeat: containers all
// have pid 1.
func newID() string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: see its documentation
	return fmt.Sprintf("%s/%d/%s", hostname(), os.Getpid(), base64.RawURLEncoding.EncodeToString(random[:]))
}

// hostname is the host's name as it stands in tokens.
func hostname() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unknown"
	}
	return reduceHost(host)
}

// reduceHost keeps what can neither end a token nor be mistaken for its parts.
func reduceHost(host string) string {
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, host)
	return host[:min(len(host), 64)]
}
