package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// config is what all clients of zamok have in common. Without --quarantine they keep to
// that of others, which the server knows: what one of them takes, gives up or passes on
// would go past it.
func (f *serverFlags) config(ctx context.Context, srv *server) (*zamok.Config, error) {
	c := &zamok.Config{
		Prefix: f.prefix, GiveUp: time.Duration(f.timeout), Quarantine: time.Duration(f.quarantine),
		Logger: slog.New(slog.DiscardHandler), // progress says what a user should know
	}
	if c.Quarantine > 0 || srv.quorum != nil { // NewQuorum has one in any case
		return c, nil
	}
	in, err := inspect.New(srv.driver, f.prefix)
	if err != nil {
		return nil, unprefixed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.GiveUp)
	defer cancel()
	// A server that does not tell refuses what comes next, too, and in words for that.
	n, _ := in.Node(ctx)
	c.Quarantine = n.Quarantine
	return c, nil
}

// jsonQuarantine is that of the deployment.
type jsonQuarantine struct {
	LastsMS int64 `json:"lasts_ms"`
	LeftMS  int64 `json:"left_ms"` // 0: it is over, or has not begun
	Begins  bool  `json:"begins"`  // with the next use, since the server was restarted or failed over
}

// quarantine is nil when there is none, or it cannot be had.
func quarantine(ctx context.Context, in *inspect.Inspector) *jsonQuarantine {
	n, err := in.Node(ctx)
	if err != nil || n.Quarantine == 0 {
		return nil
	}
	return &jsonQuarantine{LastsMS: ms(n.Quarantine), LeftMS: ms(n.Left), Begins: n.Moved}
}
