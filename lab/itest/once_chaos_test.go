package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/once"
)

// onceLog is where the functions of processes write what they do, in the order in
// which the server has it: "begin KEY RUN PID", "end …", "lost …", and the test
// "killed - - PID".
const onceLog = "log"

// epoch is how long the processes of a test use the same keys: long enough for a
// key whose process was killed to be free again.
const epoch = 2 * childTTL

// onceLoop does one thing after the other, until it is killed.
func onceLoop(c *zamok.Client) error {
	opt, err := redis.ParseURL(os.Getenv(urlEnv))
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opt)
	o, err := once.New(c, &once.Config{Policy: once.Policy(os.Getenv(policyEnv)), Retention: time.Hour})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for n := 0; ; n++ {
		key := fmt.Sprintf("%d-%d", time.Now().UnixMilli()/epoch.Milliseconds(), rand.IntN(25))
		_, err := once.Do(ctx, o, key, func(work context.Context, _ once.Run) (string, error) {
			run := fmt.Sprintf("%d.%d", os.Getpid(), n)
			log := func(what string) error {
				return rdb.RPush(ctx, onceLog, strings.Join([]string{what, key, run, strconv.Itoa(os.Getpid())}, " ")).Err()
			}
			if err := log("begin"); err != nil {
				return "", err
			}
			select {
			case <-time.After(rand.N(300 * time.Millisecond)):
				return run, log("end")
			case <-work.Done():
				return "", errors.Join(context.Cause(work), log("lost"))
			}
		})
		if err != nil && !errors.Is(err, once.ErrInterrupted) && !errors.Is(err, zamok.ErrLost) {
			return err
		}
	}
}

// Processes are killed −9 at any moment.
func TestOnceKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	lib, lasts := libraries[0], duration(t, "ZAMOK_ONCE_CHAOS", 5*time.Second)
	for _, policy := range []once.Policy{once.GiveUp, once.Retry} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			spawn := func() *process { return start(t, lib, s.URL(), "once-loop", policyEnv+"="+string(policy)) }
			processes := []*process{spawn(), spawn(), spawn()}
			kill := func(p *process) {
				select {
				case <-p.exited:
					t.Errorf("a process ended by itself: %v", p.err)
				default:
				}
				p.kill()
				s.MustDo("RPUSH", onceLog, fmt.Sprintf("killed - - %d", p.cmd.Process.Pid))
			}
			kills := 0
			for end := time.Now().Add(lasts); time.Now().Before(end); kills++ {
				span(rand.N(300 * time.Millisecond))
				i := rand.IntN(len(processes))
				kill(processes[i])
				processes[i] = spawn()
			}
			for _, p := range processes {
				kill(p)
			}
			logged, _ := s.MustDo("LRANGE", onceLog, "0", "-1").([]any)
			h := readHistory(t, logged, policy)
			h.compare(t, newOnce(t, lib.client(t, s.URL(), nil), policy))
			t.Logf("%d kills, %d keys, %d runs, %d interrupted", kills, len(h.last), h.runs, h.interrupted)
			if kills < 5 || h.runs < 10 {
				t.Error("too little happened for this to say anything")
			}
		})
	}
}

// onceHistory is what the log says of each key.
type onceHistory struct {
	runs, interrupted int
	last              map[string]string // the run that began last
	ended             map[string]bool   // runs that came to their end
}

// readHistory complains about what must not be.
func readHistory(t *testing.T, log []any, policy once.Policy) *onceHistory {
	h := &onceHistory{last: map[string]string{}, ended: map[string]bool{}}
	type live struct{ run, pid string }
	goes := map[string]live{}     // by key: the run that goes on
	beside := map[string]string{} // the run that began while this one went on
	for _, entry := range log {
		f := strings.Fields(entry.(string))
		what, key, run, pid := f[0], f[1], f[2], f[3]
		switch what {
		case "begin":
			h.runs++
			if before := h.last[key]; before != "" && policy == once.GiveUp {
				t.Errorf("key %s: run %s after %s under GiveUp", key, run, before)
			}
			if other, ok := goes[key]; ok {
				beside[other.run] = run
			}
			goes[key], h.last[key] = live{run: run, pid: pid}, run
		case "end", "lost":
			// A run that was told that its lease is over may say so late, on a machine
			// that is very busy. One that was not told must be alone.
			if other := beside[run]; other != "" && what == "end" {
				t.Errorf("key %s: run %s began beside run %s", key, other, run)
			}
			h.ended[run] = what == "end"
			if goes[key].run == run {
				delete(goes, key)
			}
		case "killed":
			for key, l := range goes {
				if l.pid == pid {
					delete(goes, key)
				}
			}
		}
	}
	return h
}

// compare asks for each key, and compares with the log.
func (h *onceHistory) compare(t *testing.T, o *once.Once) {
	for key, last := range h.last {
		out, err := once.Do(t.Context(), o, key, func(context.Context, once.Run) (string, error) { return "", nil })
		switch {
		case errors.Is(err, once.ErrInterrupted):
			h.interrupted++
		case errors.Is(err, once.ErrFailed): // its lease was lost on a busy machine
		case err != nil:
			t.Errorf("key %s: %v", key, err)
		case out.Replayed && (out.Value != last || !h.ended[last]):
			t.Errorf("key %s: the outcome is that of run %s, and the last run was %s (ended: %v)", key, out.Value, last, h.ended[last])
		}
	}
}
