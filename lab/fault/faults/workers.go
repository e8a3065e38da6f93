package faults

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

var ofWorkers = []*Fault{
	{Name: "kill-worker", Lane: Worker, Do: killWorker},
	{Name: "pause-worker", Lane: Worker, Harms: history.Deafens, Least: 0.1, Most: 0.7, Do: pauseWorker},
	{Name: "pause-worker-long", Lane: Worker, Harms: history.Deafens, Least: 1.1, Most: 2, Do: pauseWorker},
}

func (s *Scene) anyWorker(r *rand.Rand) string { return s.Workers.Proc(r.IntN(s.Workers.Len())) }

func killWorker(s *Scene, r *rand.Rand, _ time.Duration) Done {
	p := s.anyWorker(r)
	happened := s.Workers.Signal(p, syscall.SIGKILL)
	return Done{Target: p, Kills: p, Undo: func() bool { return happened }, After: s.TTL}
}

func pauseWorker(s *Scene, r *rand.Rand, _ time.Duration) Done {
	p := s.anyWorker(r)
	happened := s.Workers.Signal(p, syscall.SIGSTOP)
	return Done{Target: p, Stops: p, Undo: func() bool { return s.Workers.Signal(p, syscall.SIGCONT) && happened }}
}
