package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// pair is zamok beside one other library, in one case.
type pair struct {
	server
	peer  peer
	key   string // of the lock of this case
	other *process
}

// cases are what must hold with every other library, in this order: the last one
// kills the process.
var cases = []struct {
	name string
	run  func(t *testing.T, p pair)
}{
	{"zamok-waits", zamokWaits},
	{"the-peer-waits", thePeerWaits},
	{"the-peer-leaves-zamoks-lock-alone", thePeerLeavesAlone},
	{"zamok-leaves-the-peers-lock-alone", zamokLeavesAlone},
	{"inspect-shows-the-peer", inspectShows},
	{"no-update-is-lost", noUpdateIsLost},
	{"zamok-crashes", zamokCrashes},
	{"the-peer-crashes", thePeerCrashes},
}

func TestSharing(t *testing.T) {
	for _, kind := range peers {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			other := kind.start(t, s, "free")
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					other.t = t
					c.run(t, pair{s, kind, fmt.Sprintf(kind.form, c.name), other})
				})
			}
		})
	}
}

// zamokWaits: the other library's value is respected though zamok understands
// nothing of it, and asking again is all that tells when it is gone.
func zamokWaits(t *testing.T, p pair) {
	p.other.must("try", p.key, "30000")
	m := p.shared(t, p.key, 0)
	held := heldByOther(t, m, p.get(t, p.key))
	if held.TTL <= 0 || held.TTL > 30*time.Second || held.NoTTL {
		t.Errorf("what is left of it is %v, NoTTL %v", held.TTL, held.NoTTL)
	}
	result := goLock(t, p.server, m, p.key)
	span(2 * poll)
	if len(result) > 0 {
		t.Fatalf("zamok has it while the peer holds: %+v", receive(t, result, "lease"))
	}
	p.other.releases(p.key)
	start := time.Now() // now at the latest
	g := granted(t, result)
	if took := g.at.Sub(start); took > factor*poll {
		t.Errorf("zamok has it %v after the peer's release", took)
	}
	p.other.mustNot("try", p.key, "30000")
	release(t, g.lease)
}

// thePeerWaits past the TTL of zamok's lock, which is renewed, and gets what its
// own way of waiting gets it.
func thePeerWaits(t *testing.T, p pair) {
	const ttl = 3 * time.Second
	lease := tryLock(t, p.shared(t, p.key, ttl))
	p.other.mustNot("try", p.key, "30000")
	span(ttl + ttl/4) // by renewal
	p.other.mustNot("try", p.key, "30000")
	if err := lease.Err(); err != nil {
		t.Fatalf("zamok lost it: %v", err)
	}
	p.other.order("lock", p.key, "30000")
	span(poll)
	if len(p.other.words) > 0 {
		t.Fatal("the peer has it while zamok holds")
	}
	release(t, lease)
	if got := p.other.answer(); got != "yes" {
		t.Fatalf("lock: %s", got)
	}
	heldByOther(t, p.shared(t, p.key, 0), p.get(t, p.key))
	p.other.releases(p.key)
	if v := p.get(t, p.key); v != "" {
		t.Errorf("after the peer's release the key has %q", v)
	}
}

// thePeerLeavesAlone: a peer that lost its lock, by its TTL or as here by an
// operator, goes on to extend and to release what zamok holds now.
func thePeerLeavesAlone(t *testing.T, p pair) {
	p.other.must("try", p.key, "1000")
	p.MustDo("DEL", p.key)
	const ttl = time.Minute // not renewed within this test
	lease := tryLock(t, p.shared(t, p.key, ttl))
	value := p.get(t, p.key)
	untouched := func(after string) {
		t.Helper()
		if v := p.get(t, p.key); v != value {
			t.Fatalf("after %s the key has %q, want %q", after, v, value)
		}
		if left := p.pttl(t, p.key); left < ttl/2 {
			t.Errorf("after %s zamok's lock has %v left", after, left)
		}
	}
	if got := p.other.ask("extend", p.key, "1000"); got == "yes" {
		t.Error("the peer says that it extended its lock")
	}
	untouched("the peer's extend")
	span(1200 * time.Millisecond) // those that extend by themselves do so within their TTL
	untouched("the peer's TTL")
	if got := p.other.ask("release", p.key); got == "yes" {
		t.Error("the peer says that it released its lock")
	}
	untouched("the peer's release")
	if err := lease.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	release(t, lease)
}

// zamokLeavesAlone is the same the other way round: zamok must say that it lost
// its lease, and to whom, and may not touch what it lost.
func zamokLeavesAlone(t *testing.T, p pair) {
	lease := tryLock(t, p.shared(t, p.key, time.Minute)) // not renewed within this test
	p.MustDo("DEL", p.key)
	p.other.must("try", p.key, "30000")
	value := p.get(t, p.key)
	lostTo(t, "Extend", lease.Extend(t.Context(), time.Minute), value)
	lostTo(t, "Release", lease.Release(t.Context()), value)
	if v, left := p.get(t, p.key), p.pttl(t, p.key); v != value || left > 30*time.Second || left < 15*time.Second {
		t.Errorf("the peer's key has %q with %v left, want %q", v, left, value)
	}
	p.other.releases(p.key)
	if v := p.get(t, p.key); v != "" {
		t.Errorf("after the peer's release the key has %q", v)
	}
}

// thePeerCrashes with kill −9, so that nothing of it can release or extend any
// more: its TTL alone ends the lock, not sooner, and zamok asks when it does.
func thePeerCrashes(t *testing.T, p pair) {
	p.other.must("try", p.key, "1500")
	result := goLock(t, p.server, p.shared(t, p.key, 0), p.key)
	p.other.kill()
	start := time.Now()
	left := p.pttl(t, p.key) // of a moment after start, so it ends at start + left or later
	g := granted(t, result)
	switch took := g.at.Sub(start); {
	case took < left-rounding:
		t.Errorf("zamok has it %v after the crash, when the peer's lock had %v left", took, left)
	case took > left+factor*poll:
		t.Errorf("zamok has it %v after the crash, when the peer's lock had only %v left", took, left)
	}
	release(t, g.lease)
}

// zamokCrashes: the other library needs no more than the TTL that zamok gave.
func zamokCrashes(t *testing.T, p pair) {
	ours := run(t, again(t, p.server, "zamok"))
	ours.must("try", p.key, "1000")
	p.other.mustNot("try", p.key, "30000")
	p.other.order("lock", p.key, "30000")
	ours.kill()
	start := time.Now()
	left := p.pttl(t, p.key)
	if got := p.other.answer(); got != "yes" {
		t.Fatalf("lock: %s", got)
	}
	if took := time.Since(start); took < left-rounding {
		t.Errorf("the peer has it %v after the crash, when zamok's lock had %v left", took, left)
	}
	heldByOther(t, p.shared(t, p.key, 0), p.get(t, p.key))
}

// inspectShows: inspect knows the lock by its key, and where the other library can
// be given the key that zamok forms by itself, by its name too.
func inspectShows(t *testing.T, p pair) {
	in, err := inspect.New(zamokgoredis.New(p.redis(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	p.other.must("try", p.key, "30000")
	result := goLock(t, p.server, p.shared(t, p.key, 0), p.key)
	l, err := in.ShowKey(t.Context(), p.key)
	if err != nil || !l.Held || !l.First().Foreign || l.First().Token != p.get(t, p.key) || l.First().Fence != 0 || l.NoTTL ||
		l.Left <= 0 || l.Left > 30*time.Second || l.Waiting != 1 {
		t.Errorf("while the peer holds: %+v, %v", l, err)
	}
	p.other.releases(p.key)
	g := granted(t, result)
	l, err = in.ShowKey(t.Context(), p.key)
	if err != nil || !l.Held || l.First().Foreign || l.First().Token != g.lease.Token() || l.First().Fence != g.lease.Fence() {
		t.Errorf("while zamok holds: %+v, %v", l, err)
	}
	release(t, g.lease)
	if p.peer.own != "" {
		inspectShowsName(t, p, in)
	}
}

func inspectShowsName(t *testing.T, p pair, in *inspect.Inspector) {
	t.Helper()
	name, key := fmt.Sprintf(p.peer.shown, "shown"), fmt.Sprintf(p.peer.own, "shown")
	p.other.must("try", key, "30000")
	l, err := in.Show(t.Context(), name)
	if err != nil || !l.Held || !l.First().Foreign || l.First().Token != p.get(t, key) {
		t.Errorf("by name: %+v, %v", l, err)
	}
	heldByOther(t, p.zamok(t, zamok.Config{}).Mutex(name, nil), p.get(t, key)) // without Key
	p.other.releases(key)
}
