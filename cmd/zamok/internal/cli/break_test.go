package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// What an operator reads before a break, for each kind of holder.
func TestBreakSaysWhatItRisks(t *testing.T) {
	held := heldBy("a", "h", time.Minute, 0)
	with := func(change func(*inspect.Lock)) inspect.Lock {
		l := heldBy("a", "h", time.Minute, 0)
		change(&l)
		return l
	}
	for _, c := range []struct {
		now  bool
		l    inspect.Lock
		want string
	}{
		{false, held, "this asks h pid 1 to stop; its lease ends in 10s at the latest"},
		{false, with(func(l *inspect.Lock) { l.Holders[0].Broken = &inspect.BrokenBy{By: "ann", Why: "x"} }), "it has been asked to stop before, by ann: x"},
		{false, with(func(l *inspect.Lock) { l.Holders[0].Detached = true }), "perhaps nobody is there to hear it, and then it ends in 10s"},
		{false, with(func(l *inspect.Lock) { l.Holders[0].Silent = true }), "silent: perhaps it does not hear it, and then the lease ends in 10s"},
		{true, held, "it may go on until it notices, for 10s at most, while the next one works"},
		{true, with(func(l *inspect.Lock) { l.Holders[0].TTL = time.Minute }), "for 1m00s at most"}, // it may renew before it is broken
		{true, with(func(l *inspect.Lock) { l.Holders[0].Holder.Resting = true }), "this ends the rest"},
		{true, with(func(l *inspect.Lock) { l.Holders[0].Holder = zamok.Holder{Foreign: true, Token: "x"} }), "which is not told"},
	} {
		if got := (&breakFlags{now: c.now}).willDo(c.l, c.l.Holders); !strings.Contains(got, c.want) {
			t.Errorf("now %v: %q, want %q in it", c.now, got, c.want)
		}
	}
}

// A lock that changes hands between the look and the break is left alone, and the
// exit code tells that from a lock that nobody holds.
func TestBreakHitsNoLaterHolder(t *testing.T) {
	ctx := context.Background()
	server := memory.New()
	client, err := zamok.New(server, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	in, err := inspect.New(server, "")
	if err != nil {
		t.Fatal(err)
	}
	m := client.Mutex("job", nil)
	first, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := in.Show(ctx, "job")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = in.Break(ctx, shown, &inspect.BreakConfig{Why: "x"})
	if f := explain((&breakFlags{}).notBroken(shown, shown.First(), err)); f.code != 1 || !strings.Contains(f.Error(), "was released meanwhile") || f.hint == "" {
		t.Errorf("released: %d %v", f.code, f)
	}
	second, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.Break(ctx, shown, &inspect.BreakConfig{Why: "x", Now: true})
	if f := explain((&breakFlags{}).notBroken(shown, shown.First(), err)); f.code != 75 || !strings.Contains(f.Error(), "has changed hands meanwhile") || f.hint == "" {
		t.Errorf("taken by another: %d %v", f.code, f)
	}
	if err := second.Check(ctx); err != nil {
		t.Errorf("the later holder was hit: %v", err)
	}
	foreign := heldByForeign("job")
	for _, l := range []inspect.Lock{foreign, shown} {
		if f := explain((&breakFlags{}).notBroken(l, l.First(), inspect.ErrDeaf)); f.code != 75 || !strings.Contains(f.hint, "--now") {
			t.Errorf("deaf: %d %v, hint %s", f.code, f, f.hint)
		}
	}
	if other := errors.New("other"); (&breakFlags{}).notBroken(shown, shown.First(), other) != other {
		t.Error("another error was changed")
	}
}

func TestBreakAuthor(t *testing.T) {
	t.Setenv("SUDO_USER", "ann")
	if got := (&breakFlags{}).author(); !strings.HasPrefix(got, "ann@") {
		t.Errorf("behind sudo: %q", got)
	}
	if got := (&breakFlags{by: "cron on call"}).author(); got != "cron on call" {
		t.Errorf("--by: %q", got)
	}
	t.Setenv("SUDO_USER", "")
	if got := (&breakFlags{}).author(); got != "" { // package inspect knows it
		t.Errorf("without sudo: %q", got)
	}
}
