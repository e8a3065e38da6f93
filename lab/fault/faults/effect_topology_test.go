package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// writer counts, in one key, what a server has answered.
type writer struct {
	key    string
	server *drivertest.Server
	acked  int64
}

// write has each primary asked again and again until it does not answer, or refuses, or
// stop is called, which waits for all.
func (g *stage) write() (all []*writer, stop func()) {
	var ended sync.WaitGroup
	ctx, cancel := context.WithCancel(g.Context())
	for i, s := range g.Servers {
		if drivertest.Role(s) != "master" {
			continue
		}
		w := &writer{server: s}
		for n := 0; w.acked == 0; n++ { // in a cluster each has some names only
			w.key = fmt.Sprintf("%d-%d", i, n)
			v, _ := s.Do("INCR", w.key)
			w.acked, _ = v.(int64)
		}
		all = append(all, w)
		ended.Go(func() {
			for ctx.Err() == nil {
				v, err := s.Do("INCR", w.key)
				if err != nil {
					return
				}
				w.acked = v.(int64)
			}
		})
	}
	return all, func() { cancel(); ended.Wait() }
}

// left is what some server has of what a writer was answered.
func (g *stage) left(w *writer) (most int64) {
	for _, s := range g.Servers {
		v, _ := s.Do("GET", w.key)
		text, _ := v.(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		most = max(most, n)
	}
	return most
}

// Servers take over from each other, and what the new one lacks is lost.
func TestSentinelAndClusterFaultsHaveAnEffect(t *testing.T) {
	drivertest.Failovers(t)
	for _, kind := range []string{"sentinel", "sentinel-wait", "cluster"} {
		s, n := scene(t, kind)
		for _, f := range ofTopology {
			p, ok := s.Find(f.Name)
			over := f.Name != "cluster-hang" && f.Name != "cluster-move"
			if !ok || !over || !slices.Contains(p.Faults, f.Name) {
				continue
			}
			t.Run(kind+" "+f.Name, func(t *testing.T) {
				g := &stage{T: t, Scene: s, fault: f, signals: n}
				all, stop := g.write()
				d := g.begin(300 * time.Millisecond)
				var i int
				_, _ = fmt.Sscanf(d.Target, "server %d", &i)
				g.end(d)
				if role := drivertest.Role(g.Servers[i]); role != "slave" {
					g.Errorf("the old primary is %q", role)
				}
				stop()
				lost := int64(0)
				for _, w := range all {
					if w.server == g.Servers[i] {
						lost = w.acked - g.left(w)
					}
				}
				if strings.HasSuffix(f.Name, "-behind") && lost <= 0 {
					g.Errorf("%d of what was answered is lost", lost)
				}
			})
		}
	}
}
