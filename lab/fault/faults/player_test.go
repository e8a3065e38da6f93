package faults

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// nobody are workers that note what is sent to them.
type nobody struct{ got []syscall.Signal }

func (n *nobody) Len() int               { return 2 }
func (n *nobody) Proc(worker int) string { return "worker" }
func (n *nobody) Signal(_ string, s syscall.Signal) bool {
	n.got = append(n.got, s)
	return true
}

func scene(t *testing.T, kind string) (*Scene, *nobody) {
	t.Helper()
	k, err := deploy.KindOf(kind)
	if err != nil {
		t.Fatal(err)
	}
	host := deploy.NewHost(t.TempDir(), os.Stderr)
	t.Cleanup(host.Close)
	d, err := deploy.Start(host, k, 2)
	if err != nil {
		t.Fatal(err)
	}
	n := new(nobody)
	return &Scene{Deployment: d, Workers: n}, n
}

// Every fault that needs one server and proxies is done and undone, after which the
// server answers on every way.
func TestFaultsEnd(t *testing.T) {
	for _, kind := range []string{"single", "quorum3", "clock"} {
		t.Run(kind, func(t *testing.T) {
			s, n := scene(t, kind)
			for _, f := range All {
				if _, ok := s.Find(f.Name); !ok {
					continue
				}
				lasts := 20 * time.Millisecond
				d := f.Do(s, rand.New(rand.NewPCG(1, 2)), lasts)
				<-time.After(lasts)
				if d.Undo != nil {
					d.Undo()
				}
				if d.Target == "" {
					t.Errorf("%s says nothing of its target", f.Name)
				}
				for _, ways := range s.Ways {
					for i, way := range ways {
						answers(t, f.Name, way.Addr())
						if v, err := s.Servers[i].Do("CONFIG", "GET", "maxmemory"); err != nil || v.([]any)[1] != "0" {
							t.Errorf("after %s server %d has maxmemory %v, %v", f.Name, i, v, err)
						}
					}
				}
			}
			if kill := slices.Index(n.got, syscall.SIGKILL); kill < 0 || !slices.Contains(n.got, syscall.SIGCONT) {
				t.Errorf("workers got the signals %v", n.got)
			}
			if err := s.Align(); err != nil {
				t.Error(err)
			}
		})
	}
}

func answers(t *testing.T, after, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	if err := c.Set(t.Context(), "x", after, 0).Err(); err != nil {
		t.Errorf("after %s: %v", after, err)
	}
}

// What is played follows from the seed, whatever each fault does with chance.
func TestASeedSaysWhatIsPlayed(t *testing.T) {
	k, _ := deploy.KindOf("single")
	sequence := func(seed uint64) (all []string) {
		p := &Player{Scene: &Scene{Deployment: &deploy.Deployment{Kind: k}}, Pause: time.Second}
		r := rand.New(rand.NewPCG(seed, 0))
		for range 50 {
			gap, f, lasts := p.next(r, All)
			all = append(all, gap.String(), f.Name, lasts.String())
		}
		return all
	}
	if !slices.Equal(sequence(1), sequence(1)) || slices.Equal(sequence(1), sequence(2)) {
		t.Error("the seed does not decide")
	}
}

// Faults of all lanes are noted with their ends, and none is under way afterwards.
func TestPlayNotesWhatHappened(t *testing.T) {
	s, _ := scene(t, "single")
	dir := t.TempDir()
	log, err := history.NewLog(dir, "runner")
	if err != nil {
		t.Fatal(err)
	}
	some, err := Named("kill-worker", "reset", "flush-scripts", "kill-server")
	if err != nil {
		t.Fatal(err)
	}
	done := make(map[string]int)
	for seed := uint64(1); len(done) < len(some) && seed < 100; seed++ {
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		did, err := (&Player{Scene: s, Faults: some, Seed: seed, Pause: 10 * time.Millisecond, Log: log}).Play(ctx)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		for f, n := range did {
			done[f] += n
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	noted := make(map[string]int)
	for _, f := range h.Faults {
		noted[f.Kind]++
		if f.Till < f.From {
			t.Errorf("it did not end: %+v", f)
		}
	}
	for _, f := range some {
		if done[f.Name] == 0 || noted[f.Name] != done[f.Name] {
			t.Errorf("%s was done %d times, noted %d times", f.Name, done[f.Name], noted[f.Name])
		}
	}
	answers(t, "all", s.Ways[0][0].Addr())
}
