package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// sharedBy is what these services have, the first of them for the longest time.
func sharedBy(kind inspect.Kind, name string, services ...string) inspect.Lock {
	l := inspect.Lock{Kind: kind, Name: name, Held: true, Holding: len(services), Left: 9 * time.Second}
	l.Key = "app:lock:" + name
	if kind == inspect.KindSemaphore {
		l.Key = "app:" + l.Title()
	}
	for n, s := range services {
		h := zamok.Holder{Host: "h", PID: n + 1, Client: "h/1/x", Token: "z1/h/1/x/" + s}
		l.Holders = append(l.Holders, inspect.Holder{Holder: h, Service: s, Since: time.Duration(3-n) * time.Second, Left: 9 * time.Second})
	}
	return l
}

// Several holders take a line of the list, which says how many they are.
func TestListsSeveral(t *testing.T) {
	of := func(permits int, l inspect.Lock) inspect.Lock { l.Permits = permits; return l }
	worse := sharedBy(inspect.KindReadLock, "worse", "a", "b", "c")
	worse.Holders[0].Silent, worse.Holders[1].Silent, worse.Holders[2].Late = true, true, time.Second
	gone := inspect.Lock{Kind: inspect.KindReadLock, Name: "gone", Held: true, NoTTL: true}
	for _, c := range []struct {
		l    inspect.Lock
		want string
	}{
		{sharedBy(inspect.KindReadLock, "one", "web"), "one|1 reader: web on h pid 1|3s|9s|0|"},
		{sharedBy(inspect.KindReadLock, "two", "web", "web"), "two|2 readers: web|3s|9s|0|"},
		{worse, "worse|3 readers: a, b, c|3s|9s|0|2 silent, 1 late"},
		{gone, "gone|0 readers|-|no TTL|0|"},
		{of(5, sharedBy(inspect.KindSemaphore, "api", "web", "", "mail")), "semaphore:api|3/5 permits: web, mail|3s|9s|0|"},
		{sharedBy(inspect.KindSemaphore, "api", ""), "semaphore:api|1 permit|3s|9s|0|"},
		{of(3, inspect.Lock{Kind: inspect.KindSemaphore, Name: "free", Waiting: 1}), "semaphore:free|nobody|-|-|1|"},
	} {
		if got := strings.Join(lsRow(c.l), "|"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestShowsSeveral(t *testing.T) {
	api := sharedBy(inspect.KindSemaphore, "api", "web", "mail")
	api.Permits, api.Fixed = 5, true
	api.Holders[0].Reason, api.Holders[1].Broken = "page 1", &inspect.BrokenBy{By: "ann@ops", Why: "stuck\x1b"}
	config := sharedBy(inspect.KindReadLock, "config", "web")
	config.Holding, config.Waiting = 1001, 2
	config.Waiters = []inspect.Waiter{{Place: 1, Holder: config.First().Holder, Mode: "w", Alive: true}, {Place: 2, Holder: config.First().Holder, Mode: "r", Alive: true}}
	for _, c := range []struct {
		l    inspect.Lock
		want string
	}{
		{api, "lock      semaphore:api\nstate     2/5 permits held\npermits   5, set for all who use it\nwaiting   0\n\n" +
			"NO  HOLDER           SINCE  LEFT  NOTES\n1   web on h pid 1   3s     9s    page 1\n2   mail on h pid 2  2s     9s    broken; ann@ops: \"stuck\\x1b\"\n"},
		{config, "lock      config\nstate     held by 1001 readers\nends      in 9s, unless it is renewed\nwaiting   2\n\n" +
			"NO  HOLDER          SINCE  LEFT  NOTES\n1   web on h pid 1  3s     9s\nand 1000 more\n\n" +
			"PLACE  WANTS  WAITER   WAITING  TTL  STATE\n1      write  h pid 1  "},
		{inspect.Lock{Kind: inspect.KindSemaphore, Name: "free", Key: "semaphore:free"}, "lock      semaphore:free\nstate     free\nwaiting   0\n"},
	} {
		var b strings.Builder
		printLock(&b, width, c.l)
		if got := b.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// The command that is advised names one holder of several, and a semaphore as one.
func TestAdvisesForSeveral(t *testing.T) {
	f := &checkFlags{server: serverFlags{prefix: "app:"}}
	api := sharedBy(inspect.KindSemaphore, "api", "web", "mail")
	odd := heldBy("semaphore:x", "h", time.Minute, 0)
	odd.Key = "app:lock:semaphore:x"
	for _, c := range []struct {
		p    inspect.Problem
		want string
	}{
		{inspect.Problem{Kind: inspect.ProblemHeld, Lock: api, Token: "z1/h/1/x/web"}, "zamok break --reason TEXT --token z1/h/1/x/web --prefix app: semaphore:api"},
		{inspect.Problem{Kind: inspect.ProblemPermits, Lock: api}, "zamok slots --prefix app: semaphore:api N"},
		{inspect.Problem{Kind: inspect.ProblemHeld, Lock: odd, Token: "z1/h/1/x/1"}, "zamok break --reason TEXT --prefix app: --key app:lock:semaphore:x"},
	} {
		if got := f.advice(c.p); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
