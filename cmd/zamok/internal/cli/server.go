package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// serverFlags say where the server is.
type serverFlags struct {
	urls    []string
	urlFile string
	// quorum: the URLs are those of a quorum's members.
	quorum  bool
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
	flags.StringArrayVar(&f.urls, "redis", nil, "`URL` of the server: redis://, rediss://, unix://, redis+sentinel://,\nredis+cluster://; shown by ps, so with a password rather use\nZAMOK_REDIS or a file\n(default: ZAMOK_REDIS, REDIS_URL, then redis://127.0.0.1:6379)")
	flags.Lookup("redis").DefValue = "" // said in the text
	flags.BoolVar(&f.quorum, "quorum", false, "the lock is one of a quorum: --redis is given once for each of its\nmembers, 3, 5 or 7 servers that share nothing, of which a majority\ndecides; in ZAMOK_REDIS and in a file blanks part them")
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

// server is an open connection, or those to the members of a quorum.
type server struct {
	client redis.UniversalClient
	driver driver.Driver
	target connect.Target
	quorum *quorum // then there is nothing else
}

func (s *server) close() {
	if s.quorum != nil {
		s.quorum.close()
		return
	}
	_ = s.client.Close()
}

// newClient makes the library's client.
func (s *server) newClient(cfg *zamok.Config) (*zamok.Client, error) {
	if s.quorum != nil {
		return zamok.NewQuorum(s.quorum.nodes, cfg)
	}
	return zamok.New(s.driver, cfg)
}

// open reads the settings and connects.
func (a *app) open(ctx context.Context, f *serverFlags) (*server, error) {
	targets, origin, err := a.settings(f)
	switch {
	case err != nil:
		return nil, err
	case f.quorum:
		q, err := newQuorum(f, targets, origin)
		if err != nil {
			return nil, err
		}
		if err := q.await(ctx, a.talk, time.Duration(f.timeout)); err != nil {
			q.close()
			return nil, err
		}
		return &server{quorum: q}, nil
	case len(targets) > 1:
		err := usage("for a lock of which a majority of servers decides: --quorum; else give one", "%d servers are given without --quorum", len(targets))
		return nil, ofURL(err, origin)
	}
	target, nobodySaid := targets[0], origin == ""
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

// settings reads what the flags and the environment say; the origin is where the URLs
// are from, and empty for the default.
func (a *app) settings(f *serverFlags) (targets []connect.Target, origin string, err error) {
	if f.timeout <= 0 {
		return nil, "", usage("write for example --connect-timeout 5s", "--connect-timeout is 0")
	}
	if v := os.Getenv(quarantineFrom); v != "" && !f.given("quarantine") {
		if err := f.quarantine.Set(v); err != nil {
			return nil, "", &failure{code: exit.Config, err: fmt.Errorf("%s is %q: %w", quarantineFrom, v, err)}
		}
	}
	urls, origin, err := f.find(a.defaultURL)
	if err != nil {
		return nil, "", err
	}
	for _, raw := range urls {
		target, err := connect.ParseURL(raw)
		if err != nil {
			return nil, "", ofURL(err, origin)
		}
		a.talk.hide(target.Secrets()...)
		targets = append(targets, target)
	}
	return targets, origin, nil
}

// find returns the URLs and where they are from; that is empty for the default.
func (f *serverFlags) find(defaultURL string) (urls []string, origin string, err error) {
	switch {
	case f.given("redis") && f.given("redis-url-file"):
		return nil, "", usage("leave out one", "--redis and --redis-url-file were both given")
	case f.given("redis"): // also when empty: an unset variable must not lead to another server
		return f.urls, "--redis", nil
	case f.given("redis-url-file"):
		text, err := os.ReadFile(f.urlFile)
		if err != nil {
			return nil, "", &failure{code: exit.Config, err: fmt.Errorf("cannot read the URL: %w", err), hint: "--redis-url-file names a file whose first line is the URL"}
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return f.several(string(text), strings.TrimSpace(line)), f.urlFile, nil
	}
	for _, name := range []string{"ZAMOK_REDIS", "REDIS_URL"} {
		if v := os.Getenv(name); v != "" {
			return f.several(v, v), name, nil
		}
	}
	return []string{defaultURL}, "", nil
}

// several parts the URLs of a quorum; what has several URLs is never taken for one.
func (f *serverFlags) several(text, one string) []string {
	all := strings.Fields(text)
	if f.quorum || len(all) > 1 && !slices.ContainsFunc(all, func(word string) bool { return !strings.Contains(word, "://") }) {
		return all
	}
	return []string{one}
}

// ofURL says where the bad URL is from. One on the command line is a mistake of
// usage, one from elsewhere of configuration.
func ofURL(err error, origin string) error {
	f := *explain(err)
	if origin != "" {
		f.err = fmt.Errorf("%s: %w", origin, f.err)
	}
	if origin != "--redis" && origin != "" {
		f.code = exit.Config
	}
	return &f
}
