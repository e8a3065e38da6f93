package memory

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Do answers PING, TIME, DBSIZE, INFO, SCAN with MATCH and COUNT, FLUSHALL, and
// PUBLISH. Any other command is unknown to it.
func (s *Server) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	if err := admit(ctx, limit); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("memory: not sent: no command")
	}
	args = slices.Clone(args)
	start := time.Now()
	f := newFlight(args[0], limit)
	f.run = func() (any, error) {
		s.store.Begin()
		return s.command(strings.ToUpper(args[0]), args[1:])
	}
	s.launch(f)
	return s.await(ctx, f, start)
}

func (s *Server) command(name string, args []string) (any, error) {
	switch name {
	case "PING":
		if len(args) == 1 {
			return args[0], nil
		}
		return "PONG", nil
	case "TIME":
		us := s.now()
		return []any{itoa(us / 1e6), itoa(us % 1e6)}, nil
	case "DBSIZE":
		return int64(len(s.store.Keys())), nil
	case "INFO":
		return "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + s.id() + "\r\n", nil
	case "FLUSHALL":
		s.store.Flush()
		return "OK", nil
	case "SCAN":
		return s.scan(args)
	case "PUBLISH":
		if len(args) == 2 {
			s.publish(args[0], args[1])
			return s.listeners(args[0]), nil
		}
	}
	return nil, &driver.ServerError{Text: fmt.Sprintf("ERR unknown command '%s', or wrong arguments", name)}
}

// scan is SCAN. Keys come in the order of their hashes and the cursor is a
// hash, so a key that is there from the first page to the last is returned
// whatever comes and goes meanwhile: what SCAN promises.
func (s *Server) scan(args []string) (any, error) {
	from, pattern, count, err := scanArgs(args)
	if err != nil {
		return nil, err
	}
	type hashed struct {
		key  string
		hash uint64
	}
	var rest []hashed
	for _, key := range s.store.Keys() {
		if h := hash(key); h > from {
			rest = append(rest, hashed{key, h})
		}
	}
	slices.SortFunc(rest, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	keys, last := []any{}, uint64(0)
	for i, k := range rest {
		if i >= count && k.hash != last {
			return []any{strconv.FormatUint(last, 10), keys}, nil
		}
		if last = k.hash; match(pattern, k.key) {
			keys = append(keys, k.key)
		}
	}
	return []any{"0", keys}, nil
}

func scanArgs(args []string) (from uint64, pattern string, count int, err error) {
	syntax := &driver.ServerError{Text: "ERR syntax error"}
	pattern, count = "*", 10
	if len(args)%2 != 1 {
		return 0, "", 0, syntax
	}
	if from, err = strconv.ParseUint(args[0], 10, 64); err != nil {
		return 0, "", 0, &driver.ServerError{Text: "ERR invalid cursor"}
	}
	for i := 1; i < len(args); i += 2 {
		switch strings.ToUpper(args[i]) {
		case "MATCH":
			pattern = args[i+1]
		case "COUNT":
			if count, err = strconv.Atoi(args[i+1]); err != nil || count < 1 {
				return 0, "", 0, syntax
			}
		default:
			return 0, "", 0, syntax
		}
	}
	return from, pattern, count, nil
}

// hash never returns 0, which is the cursor of the beginning.
func hash(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return max(1, h.Sum64())
}
