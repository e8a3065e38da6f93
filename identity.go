package zamok

import (
	"context"
	"sync"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

// mostIdentities is how many holders' identities are kept.
const mostIdentities = 16

// identity is what a holder said of itself when it was last asked: the text names
// all that it holds, and may be large, so it is not read for each of its locks.
type identity struct {
	asked   instant
	service string
	reasons map[string]string // by token, as the text has it
}

// identities are those of the holders that were asked for last, by client.
type identities struct {
	mu sync.Mutex
	of map[string]*identity
}

func (i *identities) get(client string) *identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of[client]
}

func (i *identities) put(client string, id *identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of == nil || len(i.of) >= mostIdentities && i.of[client] == nil {
		i.of = make(map[string]*identity)
	}
	i.of[client] = id
}

// identify adds to e what the holder says of itself. A lease that it had not named
// when it was last asked may be new: a client names it within a second.
func (c *Client) identify(ctx context.Context, e *HeldError) {
	client := e.Holder.Client
	if client == "" || e.Service != "" {
		return // nobody knows, or it is known
	}
	seen, token := c.seen.get(client), proc.Short(tokenMark+client+"/", e.Holder.Token)
	if seen == nil || !seen.names(token) && c.clock.now().sub(seen.asked) >= announceSoon {
		seen = c.ask(ctx, client)
	}
	if seen != nil {
		e.Service, e.Reason = seen.service, seen.reasons[token]
	}
}

func (i *identity) names(token string) bool {
	_, ok := i.reasons[token]
	return ok
}

// ask reads what a client says of itself; nil when the server does not answer.
func (c *Client) ask(ctx context.Context, client string) *identity {
	id := &identity{asked: c.clock.now(), reasons: make(map[string]string)}
	reply, err := c.d.Eval(ctx, driver.Call{Script: lua.Whois, Keys: []string{keys.Proc(c.cfg.Prefix, client)}, Limit: diagnosis})
	if err != nil {
		return nil
	}
	text, _ := reply.(string)
	if p, ok := proc.Parse(text); ok {
		id.service = p.Service
		for _, l := range p.Held {
			id.reasons[l.Token] = l.Reason
		}
	}
	c.seen.put(client, id)
	return id
}
