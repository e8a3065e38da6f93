// Package token reads and makes the tokens of locks and the values of their
// keys. Nothing else takes them apart.
//
// A token is z1/HOST/PID/RANDOM/N: a protocol version, the client's id, and the
// number of the call; on a quorum N.M, with that of the round of votes. It is compared whole and never used twice, and it has no
// colon, which is why a lock's value, TOKEN ":" FENCE, can be taken apart. So
// `redis-cli GET lock:report` says who holds it. A lease that an operator asked to
// end has "!" BY "!" WHY behind that.
package token

import (
	"strconv"
	"strings"
)

// What a token begins with.
const (
	Mark     = "z1/"
	RestMark = "z1-rest/" // the lock rests (MutexConfig.MinHold) after this token
	ReadMark = "z1-read:" // readers have the lock; the fence of the last who came follows
)

// Holder is what a token or a value tells. zamok.Holder is the same structure
// with its public documentation; the two convert into each other.
type Holder struct {
	Host    string
	PID     int
	Client  string
	Token   string
	Foreign bool
	Resting bool
	Readers bool
}

// ParseValue takes the value of a lock apart. What is not ours is foreign; the
// empty value is nobody.
func ParseValue(v string) (Holder, int64) {
	if v == "" {
		return Holder{}, 0
	}
	token, rest, ok := strings.Cut(v, ":")
	num, _, _ := strings.Cut(rest, "!")
	fence, err := strconv.ParseInt(num, 10, 64)
	if ok && err == nil && fence > 0 {
		if token+":" == ReadMark {
			return Holder{Readers: true}, fence
		}
		if h, ok := Parse(token); ok {
			return h, fence
		}
	}
	return Holder{Token: v[:min(len(v), 256)], Foreign: true}, 0
}

// Note is what an operator leaves in the value of a lock that was broken: who,
// which has no "!", and why.
func Note(by, why string) string { return strings.ReplaceAll(by, "!", "_") + "!" + why }

// ParseBroken says of a value, or of what stands under the key of the lease that
// was last broken, which token it is about, who broke it and why; false when
// nobody did.
func ParseBroken(v string) (token, by, why string, ok bool) {
	token, rest, _ := strings.Cut(v, ":")
	_, note, ok := strings.Cut(rest, "!")
	if _, ours := Parse(token); !ours || !ok {
		return "", "", "", false
	}
	by, why, _ = strings.Cut(note, "!")
	return token, by, why, true
}

// Parse reads a token; false when it is none of ours.
func Parse(token string) (Holder, bool) {
	rest, ok := strings.CutPrefix(token, Mark)
	resting := false
	if !ok {
		rest, resting = strings.CutPrefix(token, RestMark)
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

// Member is one entry of a queue, MODE|TOKEN|TTL|INBOX.
type Member struct {
	Mode  string
	Token string
	TTL   int64  // ms
	Inbox string // "-": it polls
}

// ParseMember takes an entry of a queue apart; false when it is none of ours.
func ParseMember(s string) (Member, bool) {
	parts := strings.SplitN(s, "|", 4)
	if len(parts) != 4 {
		return Member{}, false
	}
	ttl, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || ttl < 0 {
		return Member{}, false
	}
	return Member{Mode: parts[0], Token: parts[1], TTL: ttl, Inbox: parts[3]}, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
