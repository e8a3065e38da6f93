package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// serverFlags say where the server is.
type serverFlags struct {
	url     string
	urlFile string
	prefix  string
	timeout duration
	// quarantine is that of all clients of the server; 0: none.
	quarantine duration
	tls        connect.TLS
	given      func(flag string) bool
}

func (f *serverFlags) add(flags *pflag.FlagSet) {
	f.given = flags.Changed
	f.timeout = duration(5 * time.Second)
	flags.StringVar(&f.url, "redis", "", "`URL` of the server: redis://, rediss://, unix://, redis+sentinel://,\nredis+cluster://; shown by ps, so with a password rather use\nZAMOK_REDIS or a file\n(default: ZAMOK_REDIS, REDIS_URL, then redis://127.0.0.1:6379)")
	flags.StringVar(&f.urlFile, "redis-url-file", "", "`FILE` whose first line is the URL")
	flags.StringVar(&f.prefix, "prefix", "", "`TEXT` before all keys, for applications that share a server")
	flags.Var(&f.timeout, "connect-timeout", "longest `TIME` to try to reach the server at start")
	flags.Var(&f.quarantine, "quarantine", "grant nothing for this `TIME` after the server was restarted, failed over\nor wiped; the longest TTL of all locks, and the same for all who use it\n(default: ZAMOK_QUARANTINE, or none)")
	flags.Lookup("quarantine").DefValue = "" // said in the text
	flags.StringVar(&f.tls.CA, "tls-ca", "", "`FILE` with the authority's certificate, for rediss://")
	flags.StringVar(&f.tls.Cert, "tls-cert", "", "`FILE` with the client's certificate")
	flags.StringVar(&f.tls.Key, "tls-key", "", "`FILE` with the key of the client's certificate")
	flags.StringVar(&f.tls.ServerName, "tls-server-name", "", "`NAME` in the server's certificate (default: the URL's host)")
}

// server is an open connection.
type server struct {
	client redis.UniversalClient
	driver driver.Driver
	target connect.Target
}

func (s *server) close() { _ = s.client.Close() }

// open reads the settings and connects.
func (a *app) open(ctx context.Context, f *serverFlags) (*server, error) {
	if f.timeout <= 0 {
		return nil, usage("write for example --connect-timeout 5s", "--connect-timeout is 0")
	}
	if v := os.Getenv(quarantineFrom); v != "" && !f.given("quarantine") {
		if err := f.quarantine.Set(v); err != nil {
			return nil, &failure{code: exit.Config, err: fmt.Errorf("%s is %q: %w", quarantineFrom, v, err)}
		}
	}
	raw, origin, err := f.find(a.defaultURL)
	if err != nil {
		return nil, err
	}
	target, err := connect.ParseURL(raw)
	if err != nil {
		return nil, ofURL(err, origin)
	}
	a.talk.hide(target.Secrets()...)
	nobodySaid := origin == ""
	client, err := connect.Open(ctx, target, f.tls, time.Duration(f.timeout), nobodySaid)
	var unreachable *connect.UnreachableError
	if nobodySaid && errors.As(err, &unreachable) {
		return nil, &failure{
			code: exit.Unavailable,
			err:  fmt.Errorf("no URL of a server was given, and none answers at the default, %s: %w", a.defaultURL, unreachable.Err),
			hint: "give --redis URL or set ZAMOK_REDIS; the server embedded in zamok serves only `zamok demo`, since a lock that lives in one process locks nothing",
		}
	}
	if err != nil {
		return nil, err
	}
	return &server{client: client, driver: zamokgoredis.New(client), target: target}, nil
}

// find returns the URL and where it is from; that is empty for the default.
func (f *serverFlags) find(defaultURL string) (raw, origin string, err error) {
	switch {
	case f.given("redis") && f.given("redis-url-file"):
		return "", "", usage("leave out one", "--redis and --redis-url-file were both given")
	case f.given("redis"): // also when empty: an unset variable must not lead to another server
		return f.url, "--redis", nil
	case f.given("redis-url-file"):
		text, err := os.ReadFile(f.urlFile)
		if err != nil {
			return "", "", &failure{code: exit.Config, err: fmt.Errorf("cannot read the URL: %w", err), hint: "--redis-url-file names a file whose first line is the URL"}
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSpace(line), f.urlFile, nil
	}
	for _, name := range []string{"ZAMOK_REDIS", "REDIS_URL"} {
		if v := os.Getenv(name); v != "" {
			return v, name, nil
		}
	}
	return defaultURL, "", nil
}

// ofURL says where the bad URL is from. One on the command line is a mistake of
// usage, one from elsewhere of configuration.
func ofURL(err error, origin string) error {
	f := explain(err)
	f.err = fmt.Errorf("%s: %w", origin, err)
	if origin != "--redis" {
		f.code = exit.Config
	}
	return f
}
