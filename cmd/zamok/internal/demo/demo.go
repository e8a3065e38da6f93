// Package demo plays short acts, each of which makes one claim about distributed
// locks, and judges each by what it observed. Every actor is a zamok.Client of its
// own, and to the others what another process on another machine is to them; its
// way to the server (wire) can be cut or delayed.
//
// It uses nothing but the public packages.
package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Config says where and how long to play.
type Config struct {
	Driver driver.Driver
	Where  string        // the server's name, for people
	Prefix string        // of all keys; nothing else is touched
	For    time.Duration // about how long all acts together take
	Out    io.Writer
	Colour bool

	// Sabotage, in tests, spoils the server as one actor sees it.
	Sabotage func(actor string, d driver.Driver) driver.Driver
}

// act is one claim and the play that shows it.
type act struct {
	title string
	play  func(*scene) verdict
}

// verdict is what was observed.
type verdict struct {
	ok   bool
	text string
}

func ok(format string, args ...any) verdict { return verdict{true, fmt.Sprintf(format, args...)} }

func failed(format string, args ...any) verdict { return verdict{false, fmt.Sprintf(format, args...)} }

func acts() []act {
	return []act{
		{"Three workers try one lock: exactly one gets it", tryOnce},
		{"A waiter is handed the lock in one trip after its release", handOver},
		{"Waiters come in the order of their arrival", inOrder},
		{"The lock of a crashed owner comes back after its TTL", crash},
		{"A late release by a stale owner is refused: the token is not its own", staleRelease},
		{"A paused owner is told, its late write is refused, its fence is smaller", pausedOwner},
		{"A long job outlives its TTL, because its lease is renewed", longJob},
	}
}

// ttlsPlayed is how many TTLs all acts take: one for each of the three faults,
// three for the long job, and some for the rest.
const ttlsPlayed = 6.4

// Shortest is the shortest Config.For: below it, a busy machine would be seen to
// lose locks, and rightly so.
const Shortest = 2 * time.Second

// Run plays all acts and reports whether all went as claimed. The error is ctx's,
// when it ended before.
func Run(ctx context.Context, c Config) (bool, error) {
	p := &printer{w: c.Out, colour: c.Colour, began: time.Now()}
	ttl := time.Duration(float64(c.For) / ttlsPlayed).Round(time.Millisecond)
	var closing sync.WaitGroup // actors of past acts, who make sure that nothing of theirs is left
	defer closing.Wait()
	p.line("zamok demo on %s. The TTL of its locks is %v.", c.Where, ttl)
	failures := 0
	for i, a := range acts() {
		p.line("")
		p.line("%s", p.paint(bold, fmt.Sprintf("%d. %s", i+1, a.title)))
		v := play(ctx, c, p, i+1, ttl, a, &closing)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if v.ok {
			p.line("%s %s", p.paint(green, "ok:"), v.text)
		} else {
			failures++
			p.line("%s %s", p.paint(red, "FAILED:"), v.text)
		}
	}
	p.line("")
	if failures > 0 {
		p.line("%s", p.paint(red, fmt.Sprintf("%d of %d claims FAILED", failures, len(acts()))))
		return false, nil
	}
	p.line("%s in %.1f s. Try it: zamok run --redis redis://HOST:6379 NAME -- COMMAND", p.paint(green, fmt.Sprintf("all %d claims ok", len(acts()))), time.Since(p.began).Seconds())
	return true, nil
}

func play(ctx context.Context, c Config, p *printer, number int, ttl time.Duration, a act, closing *sync.WaitGroup) verdict {
	ctx, cancel := context.WithTimeout(ctx, 6*ttl+5*time.Second)
	s := &scene{ctx: ctx, config: c, out: p, ttl: ttl, lock: fmt.Sprintf("act-%d", number), cancel: cancel}
	defer closing.Go(s.close)
	return a.play(s)
}

// printer writes whole lines, from several goroutines.
type printer struct {
	mu     sync.Mutex
	w      io.Writer
	colour bool
	began  time.Time
}

const (
	bold  = "1"
	dim   = "2"
	red   = "1;31"
	green = "1;32"
)

func (p *printer) paint(style, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	_, _ = io.WriteString(p.w, text+"\n")
}

// event is a line with the time since the beginning and who it is about.
func (p *printer) event(who, format string, args ...any) {
	at := p.paint(dim, fmt.Sprintf("%7.3fs", time.Since(p.began).Seconds()))
	p.line("%s  %-9s %s", at, who, fmt.Sprintf(format, args...))
}
