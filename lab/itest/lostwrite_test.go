package itest

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
)

// link is a way to a server that can be cut, and laid to another server. It
// passes bytes, since what a primary sends to a replica is no dialogue that
// drivertest.Proxy understands.
type link struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	to     string // empty: cut
	barred string // the host from which nobody comes through
	conns  []net.Conn
}

func startLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{listener: l, to: to}
	k.running.Go(k.accept)
	t.Cleanup(func() {
		_ = l.Close()
		k.lay("")
		k.cut()
		k.running.Wait()
	})
	return k
}

func (k *link) url() string { return "redis://" + k.listener.Addr().String() }

func (k *link) accept() {
	for {
		from, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.connect(from)
	}
}

// connect holds mu while it dials, so that after lay nothing new goes the old
// way.
func (k *link) connect(from net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if host, _, _ := net.SplitHostPort(from.RemoteAddr().String()); host == k.barred {
		_ = from.Close()
		return
	}
	to, err := net.Dial("tcp", k.to) // fails on an empty address
	if err != nil {
		_ = from.Close()
		return
	}
	k.conns = append(k.conns, from, to)
	pass := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		_ = dst.Close()
		_ = src.Close()
	}
	k.running.Go(func() { pass(to, from) })
	k.running.Go(func() { pass(from, to) })
}

// lay leads new connections to another server, or nowhere. Those that exist stay.
func (k *link) lay(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
}

// bar lets nobody in from a host, from now on; those of an empty one may come again.
func (k *link) bar(host string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.barred = host
}

// cut closes all connections: nothing that is written from now on comes through.
func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// witness is a driver that notes whether a diagnosis, which may take 250 ms, came
// to nothing: then nobody can say more of a lock than that its key is gone. That
// happens on a machine that is very busy.
type witness struct {
	driver.Driver
	silent atomic.Bool
}

func (w *witness) Eval(ctx context.Context, call driver.Call) (any, error) {
	reply, err := w.Driver.Eval(ctx, call)
	w.note(call, err)
	return reply, err
}

func (w *witness) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := w.Driver.EvalAll(ctx, calls)
	for i, call := range calls {
		w.note(call, results[i].Err)
	}
	return results
}

func (w *witness) note(call driver.Call, err error) {
	if err != nil && call.Script.Name() == "inspect" {
		w.silent.Store(true)
	}
}

// lostData checks that the holder was told that the server lost its data.
func (w *witness) lostData(t *testing.T, what string, err error) {
	t.Helper()
	var lost *zamok.LostError
	switch {
	case errors.As(err, &lost) && lost.Reason == zamok.LostData:
	case lost != nil && lost.Reason == zamok.LostDeleted && w.silent.Load():
		t.Logf("%s: %v: the diagnosis was not answered in time", what, err)
	default:
		t.Errorf("%s: %v, want %q", what, err, zamok.LostData)
	}
}

// pair is a primary and its replica, the way between them, and the way by which
// clients reach whichever is the primary.
type pair struct {
	primary, replica     server
	replication, clients *link
	set                  *keys.Set // of the lock
}

// failoverTTL is so long that a failover is over before the first renewal, also
// on a busy machine.
const failoverTTL = 12 * time.Second

// startPair returns when the replica has a fence of the lock, so that later its
// counter is not absent but behind.
func startPair(t *testing.T, lib library) *pair {
	t.Helper()
	p := &pair{primary: startServer(t, "--repl-diskless-sync-delay", "0")}
	p.replication = startLink(t, p.primary.Addr())
	p.clients = startLink(t, p.primary.Addr())
	host, port, _ := net.SplitHostPort(p.replication.listener.Addr().String())
	p.replica = startServer(t, "--replicaof", host+" "+port)
	var err error
	if p.set, err = keys.ForName("", "job"); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "the replica is in step", func() bool {
		info, _ := p.replica.MustDo("INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up")
	})
	l := tryLock(t, p.client(t, lib).Mutex("job", nil))
	release(t, l)
	within(t, patience, "the replica has the fence, and the release", func() bool {
		return p.fence(t, p.replica) == l.Fence() && !p.replica.has(t, "lock:job")
	})
	return p
}

func (p *pair) client(t *testing.T, lib library) *zamok.Client {
	t.Helper()
	return lib.client(t, p.clients.url(), &zamok.Config{TTL: failoverTTL})
}

// fence is the last fence that a server knows of.
func (p *pair) fence(t *testing.T, s server) int64 {
	t.Helper()
	n, _ := strconv.ParseInt(s.get(t, p.set.Fence()), 10, 64)
	return n
}

// isolate cuts replication: what is written from now on, the replica never has.
func (p *pair) isolate() {
	p.replication.lay("")
	p.replication.cut()
}

// crash is a failover after the primary died.
func (p *pair) crash(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	p.replica.MustDo("REPLICAOF", "NO", "ONE")
	p.clients.lay(p.replica.Addr())
	p.clients.cut()
}

// demote is a failover in which the old primary lives on as a replica, and its
// clients are sent away, as Sentinel does it.
func (p *pair) demote(t *testing.T) {
	t.Helper()
	p.replica.MustDo("REPLICAOF", "NO", "ONE")
	p.clients.lay(p.replica.Addr())
	host, port, _ := net.SplitHostPort(p.replica.Addr())
	p.primary.MustDo("REPLICAOF", host, port)
	p.primary.MustDo("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	p.primary.MustDo("CLIENT", "KILL", "TYPE", "pubsub")
}

// mustLack checks that the failover will lose the lease, without which a case
// shows nothing.
func (p *pair) mustLack(t *testing.T, l *zamok.Lease) {
	t.Helper()
	if v := p.primary.get(t, "lock:job"); v != value(l) {
		t.Fatalf("the primary has %q, the lease is %q", v, value(l))
	}
	if p.replica.has(t, "lock:job") {
		t.Fatal("the replica has the lock")
	}
	if had := p.fence(t, p.replica); had == 0 || had >= l.Fence() {
		t.Fatalf("the replica's last fence is %d, the lease has %d", had, l.Fence())
	}
}

// told waits until the holder of the older lease knows, and checks that it does
// within one renewal, and for one of these reasons.
func told(t *testing.T, l *zamok.Lease, since time.Time, want ...zamok.LossReason) *zamok.LostError {
	t.Helper()
	lost := lossOf(t, l)
	took := time.Since(since)
	t.Logf("told after %v: %v", took, lost)
	if took > min(factor*failoverTTL/3, failoverTTL*9/10) {
		t.Errorf("told after %v, want one renewal (%v)", took, failoverTTL/3)
	}
	if !slices.Contains(want, lost.Reason) || lost.Fence != l.Fence() {
		t.Errorf("lost: %+v, want %q", lost, want)
	}
	return lost
}

// raced are the reasons of a holder that asks while a waiter, woken by the same
// broken connection, takes the lock: before it, between the question and the
// diagnosis, or after it.
var raced = []zamok.LossReason{zamok.LostData, zamok.LostDeleted, zamok.LostTaken}

var failovers = []struct {
	name string
	do   func(p *pair, t *testing.T)
}{
	{"crashed", func(p *pair, t *testing.T) { p.crash(t) }},
	{"demoted", func(p *pair, t *testing.T) { p.demote(t) }},
}

// Both hold, each by the word of a primary. The fences differ and order them,
// although the promoted replica's counter is behind; a resource that compares
// them needs nothing else.
func TestCase27TwoHoldersByALostWrite(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		for _, failover := range failovers {
			t.Run(failover.name, func(t *testing.T) {
				t.Parallel()
				p := startPair(t, lib)
				a, b := p.client(t, lib), p.client(t, lib)
				p.isolate()
				older := tryLock(t, a.Mutex("job", nil))
				p.mustLack(t, older)
				failover.do(p, t)

				newer := tryLock(t, b.Mutex("job", nil))
				start := time.Now()
				if older.Err() != nil {
					t.Fatalf("the first has ended before the second began: %v", older.Err())
				}
				if newer.Fence() <= older.Fence() {
					t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
				}
				if lost := told(t, older, start, zamok.LostTaken); lost.By.Token != newer.Token() {
					t.Errorf("lost to %+v, the newer is %q", lost.By, newer.Token())
				}

				// What the older one does now touches nothing of the newer one's.
				if _, err := older.Run(t.Context(), writeScript, []string{"data"}, "late"); !errors.Is(err, zamok.ErrLost) {
					t.Errorf("Run by the older: %v", err)
				}
				if err := older.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
					t.Errorf("Release by the older: %v", err)
				}
				if err := newer.Check(t.Context()); err != nil || p.replica.get(t, "lock:job") != value(newer) || p.replica.has(t, "data") {
					t.Errorf("the newer lease: %v, the key holds %q", err, p.replica.get(t, "lock:job"))
				}
				release(t, newer)
			})
		}
	})
}

// A guarded script runs by what the server knows and not by what the client
// believes: between the failover and the renewal too.
func TestCase27ScriptOfTheOlderIsRefused(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		p := startPair(t, lib)
		a, b := p.client(t, lib), p.client(t, lib)
		p.isolate()
		// It renews after 100 s, so what it learns before, it learns from the script.
		older := tryLock(t, a.Mutex("job", &zamok.MutexConfig{TTL: 5 * time.Minute}))
		p.mustLack(t, older)
		p.crash(t)
		newer := tryLock(t, b.Mutex("job", nil))
		if older.Err() != nil {
			t.Fatalf("the first has ended before the second began: %v", older.Err())
		}
		// A connection that the failover has broken may leave one outcome unknown.
		within(t, patience, "the script has an answer", func() bool {
			_, err := older.Run(t.Context(), writeScript, []string{"data"}, "late")
			return errors.Is(err, zamok.ErrLost)
		})
		if p.replica.has(t, "data") {
			t.Error("the older holder's script wrote")
		}
		release(t, newer)
	})
}

// Nobody came between: the holder learns that the server lost its data, since the
// last fence there is smaller than its own.
func TestCase27NobodyCameAfterTheLostWrite(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		p := startPair(t, lib)
		w := &witness{Driver: lib.new(t, p.clients.url())}
		a := clientOn(t, w, &zamok.Config{TTL: failoverTTL})
		p.isolate()
		older := tryLock(t, a.Mutex("job", nil))
		p.mustLack(t, older)
		p.crash(t)
		lost := told(t, older, time.Now(), zamok.LostData, zamok.LostDeleted)
		w.lostData(t, "the holder", lost)
		newer := tryLock(t, a.Mutex("job", nil))
		if newer.Fence() <= older.Fence() {
			t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
		}
		release(t, newer)
	})
}

// The queue is lost with the lock. A waiter stands again, and gets the lock when
// it next asks: it must not hang because nobody knows of it.
func TestCase27WaiterStandsAgain(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		p := startPair(t, lib)
		a, b := p.client(t, lib), p.client(t, lib)
		p.isolate()
		older := tryLock(t, a.Mutex("job", nil))
		result := goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return p.primary.waiting(t, "job") == 1 })
		p.mustLack(t, older)
		p.crash(t)
		start := time.Now()
		g := receive(t, result, "lock")
		if g.err != nil {
			t.Fatal(g.err)
		}
		t.Logf("the waiter has it after %v", g.at.Sub(start))
		if took := g.at.Sub(start); slow(start, g.at, 2*time.Second) {
			t.Errorf("the waiter has it after %v", took)
		}
		if g.lease.Fence() <= older.Fence() {
			t.Errorf("fence %d after %d", g.lease.Fence(), older.Fence())
		}
		told(t, older, start, raced...)
		release(t, g.lease)
	})
}
