package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// gift is a lease that its holder left to whoever finds it.
type gift struct{ Name, Lease, Token string }

// leaveToken leaves the lease to another process.
func (h *held) leaveToken() {
	if l, ok := h.Lease.(lease); ok {
		h.leave(l.Token())
	}
}

func (h *held) leave(token string) {
	text, err := json.Marshal(gift{h.took.Name, h.took.Lease, token})
	name := filepath.Join(h.plan.Dir, fmt.Sprintf("%x", h.rand.Uint64()))
	if err == nil && os.WriteFile(name, text, 0o600) == nil {
		_ = os.Rename(name, name+".token") // now it is whole
	}
}

// find takes what somebody left. At most one finds it.
func (r *routine) find() (g gift, found bool) {
	names, err := filepath.Glob(filepath.Join(r.plan.Dir, "*.token"))
	if err != nil || len(names) == 0 {
		return g, false
	}
	name := names[r.rand.IntN(len(names))]
	mine := name + "." + r.plan.Proc
	if os.Rename(name, mine) != nil {
		return g, false
	}
	text, err := os.ReadFile(mine)
	_ = os.Remove(mine)
	return g, err == nil && json.Unmarshal(text, &g) == nil
}

// handOn goes on with a lease that somebody left, or leaves one.
func (r *routine) handOn(ctx context.Context) {
	g, found := r.find()
	if !found {
		r.giveAway(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 4*r.plan.TTL)
	defer cancel()
	e := history.Event{Client: r.client, Op: history.Resume, Kind: history.Mutex, Name: g.Name, From: g.Lease}
	r.log.Begin(&e)
	l, err := r.engine.(*client).Mutex(g.Name, nil).Resume(ctx, g.Token)
	if h := r.taken(ctx, e, lease{Lease: l}, err); h != nil {
		h.use(ctx, r.span())
		h.release(ctx)
	}
}

func (r *routine) giveAway(ctx context.Context) {
	r.with(ctx, Want{Kind: history.Mutex, Name: r.name(HandOn, r.number())}, func(h *held) {
		h.hold(ctx, r.span())
		var token string
		if h.did(ctx, h.event(history.Detach), func() (err error) { token, err = h.Lease.(lease).Detach(); return err }) == history.OK {
			h.leave(token)
		}
	})
}
