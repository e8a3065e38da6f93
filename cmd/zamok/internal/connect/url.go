// Package connect finds the server that the user means and opens a connection to
// it: the parser of its URLs, TLS, and a first exchange with a time limit.
package connect

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
	maxURL       = 8 << 10
	maxDB        = 1 << 20
)

// Target is a parsed URL. It never prints a password, whatever verb it is
// printed with.
type Target struct {
	TLS      bool
	Socket   string   // path of a unix socket; then Addrs is empty
	Addrs    []string // host:port; of the sentinels when Master is set
	Master   string   // the name under which the sentinels know the server
	Cluster  bool     // Addrs are some of the nodes of a cluster
	DB       int
	User     string
	Password string

	SentinelUser     string // of the sentinels themselves
	SentinelPassword string
}

// String returns the URL without user and passwords.
func (t Target) String() string {
	tls := ""
	if t.TLS {
		tls = "s"
	}
	switch {
	case t.Socket != "":
		return fmt.Sprintf("unix://%s?db=%d", t.Socket, t.DB)
	case t.Master != "":
		return fmt.Sprintf("redis%s+sentinel://%s/%s/%d", tls, strings.Join(t.Addrs, ","), t.Master, t.DB)
	case t.Cluster:
		return fmt.Sprintf("redis%s+cluster://%s/0", tls, strings.Join(t.Addrs, ","))
	}
	return fmt.Sprintf("redis%s://%s/%d", tls, strings.Join(t.Addrs, ","), t.DB)
}

// GoString keeps %#v from printing the fields.
func (t Target) GoString() string { return t.String() }

// Secrets returns what must not be shown.
func (t Target) Secrets() []string { return []string{t.Password, t.SentinelPassword} }

// URLError says which part of a URL is wrong, and how to write it right. It
// holds nothing that stands before the last @ of the URL.
type URLError struct {
	Part string
	Err  error
	Hint string
}

func (e *URLError) Error() string { return fmt.Sprintf("bad %s in the Redis URL: %v", e.Part, e.Err) }

func (e *URLError) Unwrap() error { return e.Err }

const forms = "write redis://USER:PASSWORD@HOST:6379/0, rediss://… for TLS, unix:///path/to/redis.sock?db=0, redis+sentinel://HOST1:26379,HOST2:26379/MASTER/0, or redis+cluster://HOST1:6379,HOST2:6379"

func bad(part, hint, format string, args ...any) error {
	return &URLError{Part: part, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// ParseURL reads the URL of a server. It is strict: what it does not know is an
// error, since a mistyped address of a lock server means a lock that locks
// nothing.
//
// It is not net/url's, because that one prints the URL, with the password, into
// its errors. Whatever stands before the last @ is never part of an error.
func ParseURL(raw string) (Target, error) {
	if raw == "" {
		return Target{}, bad("text", forms, "it is empty")
	}
	if len(raw) > maxURL {
		return Target{}, bad("text", forms, "it has %d bytes; at most %d are allowed", len(raw), maxURL)
	}
	if i := strings.IndexFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return Target{}, bad("text", "remove blanks, line ends and control characters", "byte %d is a blank or a control character", i+1)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || strings.ContainsAny(scheme, "@/?#") {
		return Target{}, noScheme(raw)
	}
	var t Target
	sentinel, unix := false, false
	switch strings.ToLower(scheme) {
	case "redis":
	case "rediss":
		t.TLS = true
	case "unix", "redis+unix", "redis+socket":
		unix = true
	case "redis+sentinel":
		sentinel = true
	case "rediss+sentinel":
		sentinel, t.TLS = true, true
	case "redis+cluster":
		t.Cluster = true
	case "rediss+cluster":
		t.Cluster, t.TLS = true, true
	default:
		return Target{}, badScheme(scheme)
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		var err error
		if t.User, t.Password, err = parseUserinfo(rest[:i]); err != nil {
			return Target{}, err
		}
		rest = rest[i+1:]
	}
	if strings.ContainsRune(rest, '#') {
		return Target{}, bad("text", "write %23 where a # is meant", "a # has no meaning here")
	}
	where, query, hasQuery := strings.Cut(rest, "?")
	if err := t.parseQuery(query, hasQuery, unix, sentinel); err != nil {
		return Target{}, err
	}
	var err error
	switch {
	case unix:
		err = t.parseSocket(where)
	case sentinel:
		err = t.parseSentinels(where)
	case t.Cluster:
		err = t.parseNodes(where)
	default:
		err = t.parseHost(where)
	}
	if err != nil {
		return Target{}, err
	}
	return t, nil
}

// noScheme is the answer to a bare host:port. Guessing would be kind, and wrong
// for all who mean TLS.
func noScheme(raw string) error {
	hint := forms
	if !strings.Contains(raw, "@") && len(raw) < 300 {
		hint = fmt.Sprintf("write redis://%s, or rediss://%s for TLS", raw, raw)
	}
	return bad("scheme", hint, "it has none")
}

func badScheme(scheme string) error {
	for _, r := range scheme {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("0123456789+.-", r)) {
			return bad("scheme", forms, "it is none that zamok knows") // whatever it is, it may be secret
		}
	}
	return bad("scheme", forms, "%.40q is none that zamok knows", scheme)
}

// parseUserinfo reads USER:PASSWORD. No part of it is ever in an error.
func parseUserinfo(s string) (user, password string, err error) {
	u, p, ok := strings.Cut(s, ":")
	if !ok {
		return "", "", bad("user", "for a password alone write redis://:PASSWORD@HOST", "there is a user but no password")
	}
	if user, err = unescape("user", u); err != nil {
		return "", "", err
	}
	if password, err = unescape("password", p); err != nil {
		return "", "", err
	}
	if password == "" && user != "" {
		return "", "", bad("password", "leave out USER:@ where the server asks for none", "it is empty")
	}
	return user, password, nil
}

func unescape(part, s string) (string, error) {
	if i := strings.IndexAny(s, "/?#@"); i >= 0 {
		return "", bad(part, fmt.Sprintf("write %%%02X for %c", s[i], s[i]), "it has a %q that is not percent-encoded", s[i])
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", bad(part, "write %25 where a % is meant", "it has a %% that begins no escape")
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", bad(part, "write %25 where a % is meant", "it has a %% that begins no escape")
		}
		b.WriteByte(byte(n))
		i += 2
	}
	return b.String(), nil
}

func (t *Target) parseQuery(query string, has, unix, sentinel bool) error {
	if !has {
		return nil
	}
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, named := strings.Cut(pair, "=")
		if seen[key] {
			return bad("query", "give each option once", "%.40q comes twice", key)
		}
		seen[key] = true
		var err error
		switch {
		case key == "db" && unix:
			err = t.parseDB(value)
		case key == "sentinel_username" && sentinel:
			t.SentinelUser, err = unescape(key, value)
		case key == "sentinel_password" && sentinel:
			t.SentinelPassword, err = unescape(key, value)
		case key == "db":
			err = bad("query", "write the database as a path: redis://HOST:6379/2", "db is for unix sockets")
		case !named: // not shown: nobody knows what it is
			err = bad("query", "write ?OPTION=VALUE", "an option has no value")
		default:
			err = bad("query", "the only options are db for unix sockets, and sentinel_username and sentinel_password; TLS files are flags", "%.40q is no option", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) parseDB(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxDB || s[0] == '+' {
		return bad("database", "the database is a number; most servers have 0 to 15", "it is no number, or too large")
	}
	t.DB = n
	return nil
}

func (t *Target) parseSocket(path string) error {
	if !strings.HasPrefix(path, "/") {
		return bad("socket", "write unix:///run/redis/redis.sock, with three slashes", "the path does not begin with /")
	}
	var err error
	if t.Socket, err = unescapePath(path); err != nil {
		return err
	}
	if t.Socket == "/" || strings.HasSuffix(t.Socket, "/") {
		return bad("socket", "write unix:///run/redis/redis.sock, with three slashes", "the path names no file")
	}
	return nil
}

// unescapePath is unescape for what may have slashes.
func unescapePath(path string) (string, error) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		u, err := unescape("socket", p)
		if err != nil {
			return "", err
		}
		if strings.IndexByte(u, 0) >= 0 {
			return "", bad("socket", "a path has no NUL byte", "it has a NUL byte")
		}
		parts[i] = u
	}
	return strings.Join(parts, "/"), nil
}

func (t *Target) parseHost(where string) error {
	host, path, _ := strings.Cut(where, "/")
	if strings.Contains(host, ",") {
		return bad("host", "for Sentinel write redis+sentinel://HOST1,HOST2/MASTER, for a cluster redis+cluster://HOST1,HOST2", "there is more than one")
	}
	addr, err := parseAddr(host, redisPort)
	if err != nil {
		return err
	}
	t.Addrs = []string{addr}
	if path == "" {
		return nil
	}
	return t.parseDB(path)
}

// parseNodes reads the nodes of a cluster, of which one that answers is enough.
func (t *Target) parseNodes(where string) error {
	hosts, path, _ := strings.Cut(where, "/")
	if path != "" && path != "0" {
		return bad("database", "leave it out", "a cluster has database 0 alone")
	}
	return t.parseAddrs(hosts, redisPort)
}

func (t *Target) parseAddrs(hosts, port string) error {
	for h := range strings.SplitSeq(hosts, ",") {
		addr, err := parseAddr(h, port)
		if err != nil {
			return err
		}
		t.Addrs = append(t.Addrs, addr)
	}
	return nil
}

func (t *Target) parseSentinels(where string) error {
	hosts, path, _ := strings.Cut(where, "/")
	if err := t.parseAddrs(hosts, sentinelPort); err != nil {
		return err
	}
	master, db, hasDB := strings.Cut(path, "/")
	if master == "" {
		return bad("master", "write redis+sentinel://HOST1:26379,HOST2:26379/MASTER, with the name from sentinel.conf", "no name of a master follows the hosts")
	}
	var err error
	if t.Master, err = unescape("master", master); err != nil {
		return err
	}
	if !hasDB || db == "" {
		return nil
	}
	return t.parseDB(db)
}

// parseAddr reads HOST or HOST:PORT, an IPv6 address in brackets.
func parseAddr(s, port string) (string, error) {
	host, rest := s, ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if host, rest, ok = strings.Cut(inner, "]"); !ok {
			return "", bad("host", "write [::1]:6379", "a ] is missing")
		}
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Is6() {
			return "", bad("host", "write [::1]:6379", "%.60q is no IPv6 address", host)
		}
		host = "[" + host + "]"
	} else {
		if i := strings.IndexByte(s, ':'); i >= 0 {
			host, rest = s[:i], s[i:]
		}
		if err := checkHost(host); err != nil {
			return "", err
		}
	}
	if rest != "" {
		port = strings.TrimPrefix(rest, ":")
		if strings.Contains(port, ":") {
			return "", bad("host", "put an IPv6 address in brackets: [::1]:6379", "it has more than one colon")
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || rest[0] != ':' || port[0] == '+' {
			return "", bad("port", "a port is a number, 1 to 65535; where a password was meant, write redis://:PASSWORD@HOST:6379", "it is no port")
		}
		port = strconv.Itoa(n)
	}
	return host + ":" + port, nil
}

func checkHost(host string) error {
	if host == "" {
		return bad("host", forms, "it is empty")
	}
	if len(host) > 253 {
		return bad("host", forms, "it has %d bytes; at most 253 are allowed", len(host))
	}
	for _, r := range host {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return bad("host", "a host name has letters, digits, dots and hyphens", "%q cannot be part of it", r)
		}
	}
	return nil
}
