package faults

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
)

var ofServers = []*Fault{
	{Name: "pause-server", Lane: Server, Harms: mute, Least: 0.1, Most: 0.6, Do: pauseServer},
	{Name: "pause-server-long", Lane: Server, Harms: mute, Least: 1.1, Most: 2, Do: pauseServer},
	{Name: "kill-server", Lane: Server, Harms: mute, Most: 0.3, Do: killServer},
	{Name: "stop-server", Lane: Server, Harms: mute, Most: 0.5, Do: stopServer},
	{Name: "few-votes", Lane: Server, Harms: mute, Least: 0.5, Most: 1.2, Do: fewVotes},
	{Name: "old-data", Lane: Server, Harms: mute, Least: 0.2, Most: 0.8, Do: oldData},
	{Name: "flush-scripts", Lane: Server, Do: flushScripts},
	{Name: "kill-listeners", Lane: Server, Harms: deaf, Least: 0.3, Most: 1, Do: killListeners},
	{Name: "kill-clients", Lane: Server, Harms: deaf, Do: killClients},
	{Name: "pause-clients", Lane: Server, Harms: mute, Least: 0.05, Most: 0.5, Do: pauseClients},
	{Name: "flush-all", Lane: Server, Harms: mute, Do: flushAll},
	{Name: "memory-full", Lane: Server, Harms: mute, Least: 0.3, Most: 1, Do: memoryFull},
	{Name: "evict", Lane: Server, Harms: mute, Least: 0.02, Most: 0.05, Do: evict},
	{Name: "clock-forward", Lane: Server, Harms: mute, Do: step(1)},
	{Name: "clock-back", Lane: Server, Harms: mute, Do: step(-1)},
}

// some are the servers to harm: a minority of a quorum's members, and one of others.
func (s *Scene) some(r *rand.Rand) []*drivertest.Server {
	n := 1
	if s.Majority > 0 {
		n += r.IntN(len(s.Servers) - s.Majority)
	}
	var some []*drivertest.Server
	for _, i := range r.Perm(len(s.Servers))[:n] {
		some = append(some, s.Servers[i])
	}
	return some
}

func (s *Scene) name(some []*drivertest.Server) (text string) {
	for i, server := range s.Servers {
		for _, one := range some {
			if one == server {
				text += fmt.Sprint(" ", i)
			}
		}
	}
	return "server" + text
}

// each does something to some servers, and something to end it.
func (s *Scene) each(r *rand.Rand, do, undo func(*drivertest.Server)) Done {
	some := s.some(r)
	for _, one := range some {
		do(one)
	}
	done := Done{Target: s.name(some), Undo: always(func() {})}
	if undo != nil {
		done.Undo = always(func() {
			for _, one := range some {
				undo(one)
			}
		})
	}
	return done
}

func pauseServer(s *Scene, r *rand.Rand, _ time.Duration) Done {
	return s.each(r, (*drivertest.Server).Pause, (*drivertest.Server).Resume)
}

// killServer is kill -9. What it had on disk it has again.
func killServer(s *Scene, r *rand.Rand, _ time.Duration) Done {
	done := s.each(r, (*drivertest.Server).Kill, (*drivertest.Server).Restart)
	done.After = s.Rest()
	return done
}

// stopServer is a planned restart: a server that saves does so.
func stopServer(s *Scene, r *rand.Rand, _ time.Duration) Done {
	done := s.each(r, (*drivertest.Server).Stop, (*drivertest.Server).Restart)
	done.After = s.Rest()
	return done
}

// fewVotes cuts each worker off from as many members as there can be without a majority,
// from others each, so that whoever is granted a lease has the votes of no more than a
// majority; and then has some members restart.
func fewVotes(s *Scene, r *rand.Rand, lasts time.Duration) Done {
	var cut []*drivertest.Proxy
	first := r.IntN(len(s.Servers))
	for worker, ways := range s.Ways {
		for i := range len(s.Servers) - s.Majority {
			cut = append(cut, ways[(first+worker+i)%len(ways)])
		}
	}
	for _, way := range cut {
		way.Blackhole()
	}
	<-time.After(lasts / 4)
	done := s.each(r, (*drivertest.Server).Restart, nil)
	done.After = s.Rest()
	done.Undo = always(func() {
		for _, way := range cut {
			way.Resume()
		}
	})
	return done
}

// oldData is a restart that goes back to what was saved when the fault began.
func oldData(s *Scene, r *rand.Rand, _ time.Duration) Done {
	some := s.some(r)
	for _, one := range some {
		one.MustDo("SAVE")
	}
	return Done{Target: s.name(some), After: s.Rest(), Undo: always(func() {
		for _, one := range some {
			one.Kill()
			one.Restart()
		}
	})}
}

func flushScripts(s *Scene, r *rand.Rand, _ time.Duration) Done {
	return s.each(r, func(one *drivertest.Server) { one.MustDo("SCRIPT", "FLUSH") }, nil)
}

// killListeners ends every subscription 20 times a second.
func killListeners(s *Scene, r *rand.Rand, _ time.Duration) Done {
	some := s.some(r)
	var killed atomic.Int64
	stop := every(50*time.Millisecond, func(int) {
		for _, one := range some {
			n, _ := one.Do("CLIENT", "KILL", "TYPE", "pubsub")
			ended, _ := n.(int64)
			killed.Add(ended)
		}
	})
	return Done{Target: s.name(some), Undo: func() bool { stop(); return killed.Load() > 0 }}
}

func killClients(s *Scene, r *rand.Rand, _ time.Duration) Done {
	return s.each(r, func(one *drivertest.Server) { one.MustDo("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }, nil)
}

func pauseClients(s *Scene, r *rand.Rand, lasts time.Duration) Done {
	mode := []string{"WRITE", "ALL"}[r.IntN(2)]
	ms := strconv.FormatInt(max(1, lasts.Milliseconds()), 10)
	done := s.each(r, func(one *drivertest.Server) { one.MustDo("CLIENT", "PAUSE", ms, mode) }, nil)
	done.Detail = mode
	return done
}

func flushAll(s *Scene, r *rand.Rand, _ time.Duration) Done {
	done := s.each(r, func(one *drivertest.Server) { one.MustDo("FLUSHALL") }, nil)
	done.After = s.Rest()
	return done
}

// memoryFull allows a server less memory than it uses.
func memoryFull(s *Scene, r *rand.Rand, _ time.Duration) Done {
	return s.memory(r, "noeviction", func(*drivertest.Server) int { return 1 << 20 })
}

// evict has a server throw away most of its keys, and then one for each new
// one.
func evict(s *Scene, r *rand.Rand, _ time.Duration) Done {
	return s.memory(r, "allkeys-random", func(one *drivertest.Server) int {
		about, _ := one.MustDo("INFO", "memory").(string)
		return figure(about, "used_memory") - figure(about, "used_memory_dataset")*3/4
	})
}

func (s *Scene) memory(r *rand.Rand, policy string, limit func(*drivertest.Server) int) Done {
	return s.each(r, func(one *drivertest.Server) {
		one.MustDo("CONFIG", "SET", "maxmemory-policy", policy)
		one.MustDo("CONFIG", "SET", "maxmemory", strconv.Itoa(limit(one)))
	}, func(one *drivertest.Server) {
		one.MustDo("CONFIG", "SET", "maxmemory", "0")
		one.MustDo("CONFIG", "SET", "maxmemory-policy", "noeviction")
	})
}

// figure reads one of what INFO says.
func figure(info, name string) int {
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	digits, _, _ := strings.Cut(rest, "\r")
	n, _ := strconv.Atoi(digits)
	return n
}

// step sets the clock of the server that has one of its own, by up to twice a TTL, and
// leaves it there.
func step(way int) func(*Scene, *rand.Rand, time.Duration) Done {
	return func(s *Scene, r *rand.Rand, _ time.Duration) Done {
		d := time.Duration(1 + r.Int64N(int64(2*s.TTL)))
		by := time.Duration(way) * d
		s.ahead += by
		s.must(s.Clock.Set(s.ahead.Microseconds()))
		done := Done{Target: s.name(s.Servers[len(s.Servers)-1:]), Detail: by.String()}
		if way < 0 {
			done.After = d // the server counts the time again
		}
		return done
	}
}

// Align sets a clock right that is behind, when all faults are over: leases would end as
// much later.
func (s *Scene) Align() error {
	if s.ahead >= 0 {
		return nil
	}
	s.ahead = 0
	return s.Clock.Set(0)
}
