package driver

import (
	"context"
	"strings"
	"sync"
)

// Hashes remembers the hash under which servers cache each script. The hash
// depends on nothing but the text, so what one server said is true of all.
// The zero value is ready for use.
type Hashes struct {
	known sync.Map // *Script → hash
}

// Of returns the hash of the script. The first time it asks for it with load,
// which sends SCRIPT LOAD; when several goroutines come first they may all ask.
func (h *Hashes) Of(ctx context.Context, s *Script, load func(ctx context.Context, source string) (string, error)) (string, error) {
	if sha, ok := h.known.Load(s); ok {
		return sha.(string), nil
	}
	sha, err := load(ctx, s.source)
	if err != nil {
		return "", err
	}
	h.known.Store(s, sha)
	return sha, nil
}

// IsNoScript says whether err is the server's answer that it does not have the
// script in its cache. Nothing ran then, so it is always safe to send the whole
// text next.
func IsNoScript(err error) bool {
	se, ok := err.(*ServerError)
	return ok && strings.HasPrefix(se.Text, "NOSCRIPT")
}
