package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/history"
)

const (
	narrowest = 4 << 10 // bytes a second: a script's call takes some 100 ms
	deaf      = history.Deafens
	mute      = history.Deafens | history.Stalls
)

var ofNetwork = []*Fault{
	{Name: "cut-before", Lane: Network, Harms: deaf, Most: 0.3, Do: once((*drivertest.Proxy).CutBefore, call)},
	{Name: "cut-after", Lane: Network, Harms: deaf, Most: 0.3, Do: once((*drivertest.Proxy).CutAfter, call)},
	{Name: "cut-inside", Lane: Network, Harms: deaf, Most: 0.3, Do: once((*drivertest.Proxy).CutInside, call)},
	{Name: "hold-request", Lane: Network, Harms: mute, Least: 0.1, Most: 1.5, Do: once((*drivertest.Proxy).Hold, call)},
	{Name: "hold-reply", Lane: Network, Harms: mute, Least: 0.1, Most: 1.5, Do: once((*drivertest.Proxy).HoldReply, call)},
	{Name: "drop-message", Lane: Network, Harms: deaf, Least: 0.1, Most: 0.5, Do: once((*drivertest.Proxy).DropPush, message)},
	{Name: "hold-message", Lane: Network, Harms: deaf, Least: 0.1, Most: 1, Do: once((*drivertest.Proxy).HoldPush, message)},
	{Name: "reset", Lane: Network, Harms: deaf, Do: reset},
	{Name: "delay", Lane: Network, Harms: deaf, Least: 0.2, Most: 1, Do: delay},
	{Name: "jitter", Lane: Network, Harms: deaf, Least: 0.2, Most: 1, Do: jitter},
	{Name: "narrow", Lane: Network, Harms: mute, Least: 0.2, Most: 1, Do: narrow},
	{Name: "blackhole", Lane: Network, Harms: mute, Least: 0.1, Most: 1.5, Do: blackhole},
	{Name: "refuse", Lane: Network, Harms: deaf, Least: 0.1, Most: 0.5, Do: refuse},
	{Name: "partition", Lane: Network, Harms: mute, Least: 0.1, Most: 2, Do: partition},
}

// call matches what zamok asks of a server.
var call = drivertest.Command("EVALSHA", "EVAL")

// message matches what waiters are told, of each protocol.
var message = drivertest.Command("message", "smessage")

// anyWay is one worker's way to one server.
func (s *Scene) anyWay(r *rand.Rand) (*drivertest.Proxy, string) {
	worker, server := r.IntN(len(s.Ways)), r.IntN(len(s.Servers))
	return s.Ways[worker][server], fmt.Sprintf("way %d-%d", worker, server)
}

// once has something done to the next command that comes by, if one comes within the
// time, and held until then.
func once(arm func(*drivertest.Proxy, drivertest.Match) *drivertest.Fault, m drivertest.Match) func(*Scene, *rand.Rand, time.Duration) Done {
	return func(s *Scene, r *rand.Rand, _ time.Duration) Done {
		way, name := s.anyWay(r)
		f := arm(way, m)
		return Done{Target: name, Undo: func() bool {
			unused := f.Cancel()
			f.Release()
			return !unused
		}}
	}
}

func reset(s *Scene, r *rand.Rand, _ time.Duration) Done {
	way, name := s.anyWay(r)
	way.KillAll()
	return Done{Target: name}
}

func delay(s *Scene, r *rand.Rand, _ time.Duration) Done {
	way, name := s.anyWay(r)
	d := time.Duration(1 + r.Int64N(int64(s.TTL/10)))
	way.Delay(d)
	return Done{Target: name, Detail: d.String(), Undo: always(func() { way.Delay(0) })}
}

// jitter is a delay that is another one every 10 ms.
func jitter(s *Scene, r *rand.Rand, lasts time.Duration) Done {
	way, name := s.anyWay(r)
	most := 1 + int64(s.TTL/10)
	seed := r.Uint64()
	stop := every(10*time.Millisecond, func(i int) {
		way.Delay(time.Duration(rand.New(rand.NewPCG(seed, uint64(i))).Int64N(most)))
	})
	return Done{Target: name, Detail: "up to " + time.Duration(most).String(), Undo: always(func() {
		stop()
		way.Delay(0)
	})}
}

func narrow(s *Scene, r *rand.Rand, _ time.Duration) Done {
	way, name := s.anyWay(r)
	rate := narrowest << r.IntN(4)
	way.Narrow(rate)
	return Done{Target: name, Detail: fmt.Sprint(rate, " bytes/s"), Undo: always(func() { way.Narrow(0) })}
}

func blackhole(s *Scene, r *rand.Rand, _ time.Duration) Done {
	way, name := s.anyWay(r)
	way.Blackhole()
	return Done{Target: name, Undo: always(way.Resume)}
}

// refuse also cuts what is there, or nobody would dial.
func refuse(s *Scene, r *rand.Rand, _ time.Duration) Done {
	way, name := s.anyWay(r)
	way.Refuse()
	way.KillAll()
	return Done{Target: name, Undo: always(way.Accept)}
}

func partition(s *Scene, r *rand.Rand, _ time.Duration) Done {
	i := r.IntN(len(s.Spaces))
	space := s.Spaces[i]
	s.must(space.Cut())
	// What was sent meanwhile comes when TCP sends it again, up to a second later.
	return Done{Target: fmt.Sprint("space ", i), After: time.Second, Undo: always(func() { s.must(space.Mend()) })}
}

// must fails the fault.
func (s *Scene) must(err error) {
	if err != nil {
		s.Host.Fatal(err)
	}
}

// every calls f at once and then again and again, until stop, which waits for it.
func every(d time.Duration, f func(i int)) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(d)
	go func() {
		defer close(ended)
		defer tick.Stop()
		for i := 0; ; i++ {
			f(i)
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}
