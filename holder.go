package zamok

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A token is z1/HOST/PID/RANDOM/N: a protocol version, the client's id, and the
// number of the call. It is compared whole and never used twice, and it has no
// colon, which is why TOKEN ":" FENCE can be taken apart. So `redis-cli GET
// lock:report` says who holds it.
const (
	tokenMark = "z1/"
	restMark  = "z1-rest/" // the lock rests (MutexConfig.MinHold) after this token
)

// Holder is who has a lock, as far as its value tells.
type Holder struct {
	Host    string
	PID     int
	Client  string // the client's id, HOST/PID/RANDOM
	Token   string // whole; of a foreign holder its whole value, at most 256 bytes of it
	Foreign bool   // another program's value under this key: respected, waited for, not understood
	Resting bool   // nobody holds the lock any more, it stays taken until MinHold is over
}

func (h Holder) String() string {
	switch {
	case h.Foreign:
		return fmt.Sprintf("a foreign program (value %.40q)", h.Token)
	case h.Token == "":
		return "nobody"
	}
	return fmt.Sprintf("%s pid %d", h.Host, h.PID)
}

// parseValue takes the value of a lock apart. What is not ours is foreign.
func parseValue(v string) (Holder, int64) {
	token, num, ok := cutLast(v, ":")
	fence, err := strconv.ParseInt(num, 10, 64)
	if ok && err == nil && fence > 0 {
		if h, ok := parseToken(token); ok {
			return h, fence
		}
	}
	if v == "" {
		return Holder{}, 0
	}
	return Holder{Token: v[:min(len(v), 256)], Foreign: true}, 0
}

// parseToken reads a token; false when it is none of ours.
func parseToken(token string) (Holder, bool) {
	rest, ok := strings.CutPrefix(token, tokenMark)
	resting := false
	if !ok {
		rest, resting = strings.CutPrefix(token, restMark)
		if !resting {
			return Holder{}, false
		}
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 4 || parts[0] == "" || parts[2] == "" || parts[3] == "" || strings.ContainsAny(rest, ":| ") {
		return Holder{}, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid < 0 {
		return Holder{}, false
	}
	client, _, _ := cutLast(rest, "/")
	return Holder{Host: parts[0], PID: pid, Client: client, Token: token, Resting: resting}, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// newID draws the id of a client. The pid alone would repeat: containers all
// have pid 1.
func newID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: see its documentation
	return fmt.Sprintf("%s/%d/%s", reduceHost(host), os.Getpid(), base64.RawURLEncoding.EncodeToString(random[:]))
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
