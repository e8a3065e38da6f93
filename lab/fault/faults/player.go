package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// Player does faults of a scene until it is stopped.
type Player struct {
	Scene  *Scene
	Faults []*Fault
	Seed   uint64
	Pause  time.Duration // the longest between two faults of one lane
	Log    *history.Log
}

// Play does faults until ctx ends, and returns when all are undone. How many of
// each kind happened is what it returns, also with an error: a fault that could not
// be done or undone, after which its lane rests.
func (p *Player) Play(ctx context.Context) (map[string]int, error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		first error
		done  = make(map[string]int)
	)
	for i, lane := range lanes {
		var mine []*Fault
		for _, f := range p.Faults {
			if f.Lane == lane {
				mine = append(mine, f)
			}
		}
		if len(mine) == 0 {
			continue
		}
		r := rand.New(rand.NewPCG(p.Seed, uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				gap, f, lasts := p.next(r, mine)
				if !sleep(ctx, gap) {
					return
				}
				happened, err := p.do(ctx, f, rand.New(rand.NewPCG(r.Uint64(), 0)), lasts)
				mu.Lock()
				if happened {
					done[f.Name]++
				}
				if err != nil && first == nil {
					first = fmt.Errorf("fault %s: %w", f.Name, err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return done, first
}

// next draws what the lane does next, always with the same number of draws, so
// that one fault's use of chance does not change the next.
func (p *Player) next(r *rand.Rand, mine []*Fault) (gap time.Duration, f *Fault, lasts time.Duration) {
	gap = time.Duration(r.Int64N(int64(p.Pause) + 1))
	f = mine[r.IntN(len(mine))]
	part := f.Least + r.Float64()*(f.Most-f.Least)
	unit := p.Scene.TTL
	if f.Lane != Worker {
		unit = min(unit, time.Second) // or others would take the server for dead
	}
	return gap, f, time.Duration(part * float64(unit))
}

func (p *Player) do(ctx context.Context, f *Fault, r *rand.Rand, lasts time.Duration) (happened bool, err error) {
	note := history.Fault{Kind: f.Name, Harms: f.Harms, From: history.Now()}
	var d Done
	if err := p.Scene.Host.Try(func() { d = f.Do(p.Scene, r, lasts) }); err != nil {
		return false, err
	}
	note.Target, note.Kills, note.Stops, note.Detail = d.Target, d.Kills, d.Stops, d.Detail
	p.Log.Fault(note)
	sleep(ctx, lasts)
	happened = true
	if d.Undo != nil {
		err = p.Scene.Host.Try(func() { happened = d.Undo() })
	}
	note.Till = history.Now() + int64(d.After)
	p.Log.Fault(note)
	if f.Lane == Server {
		sleep(ctx, d.After) // the next one would meet a server that is not back
	}
	return happened, err
}

// sleep reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
