package drivertest

import (
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func waitCases() []serverCase {
	return []serverCase{
		{"Wait", caseWait},
		{"WaitOnTheSameConnection", caseWaitOnTheSameConnection},
		{"WaitHoldsUpNobody", caseWaitHoldsUpNobody},
		{"WaitForLong", caseWaitForLong},
		{"WaitRefused", caseWaitRefused},
		{"WaitErrors", caseWaitErrors},
	}
}

// replica starts a replica of the case's server, in step.
func (e *env) replica() *Server {
	e.Helper()
	e.server.MustDo("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(e.server.Addr())
	r := StartServer(e, "--replicaof", host+" "+port)
	eventually(e, "the replica to be in step", func() bool {
		info, _ := r.MustDo("INFO", "replication").(string)
		primary, _ := e.server.MustDo("INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up") && strings.Contains(primary, "state=online")
	})
	return r
}

// The number is what the server counted, whether it is enough or not, and the reply is
// that of the script, also of one that the server has forgotten.
func caseWait(e *env) {
	d := e.driver()
	start := time.Now()
	reply, acked, err := d.EvalWait(e.Context(), call(echo, nil, "x"), 1, 200*time.Millisecond)
	if reply != "x" || acked != 0 || err != nil || time.Since(start) < 200*time.Millisecond {
		e.Errorf("without a replica: %v, %d, %v after %v", reply, acked, err, time.Since(start))
	}
	r := e.replica()
	for _, forget := range []bool{false, true} {
		if forget {
			e.server.MustDo("SCRIPT", "FLUSH")
		}
		was := e.server.MustDo("GET", "k")
		reply, acked, err := d.EvalWait(e.Context(), call(incr, []string{"k"}, "x"), 1, long/2)
		if acked != 1 || err != nil || reply == nil {
			e.Errorf("with a replica, forget=%v: %v, %d, %v", forget, reply, acked, err)
		}
		if now := r.MustDo("GET", "k"); now == was {
			e.Errorf("the replica has %v as before", now)
		}
	}
}

// WAIT counts who has what the server had written when the same connection ran its
// last command. On any other one it would count a replica that has not even begun.
func caseWaitOnTheSameConnection(e *env) {
	d := e.driver()
	e.replica().Pause()
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			_, acked, err := d.EvalWait(e.Context(), call(incr, []string{"k"}, "x"), 1, 300*time.Millisecond)
			if acked != 0 || err != nil {
				e.Errorf("a replica that stands still was counted: %d, %v", acked, err)
			}
		})
	}
	callers.Wait()
}

// A library may send all calls over one connection, which WAIT would block.
func caseWaitHoldsUpNobody(e *env) {
	d := e.driver()
	waits := make(chan error, 1)
	go func() {
		_, _, err := d.EvalWait(e.Context(), call(echo, nil, "x"), 1, 2*time.Second)
		waits <- err
	}()
	eventually(e, "the server to be waiting", func() bool {
		list, _ := e.server.MustDo("CLIENT", "LIST").(string)
		return strings.Contains(list, "cmd=wait")
	})
	for range 20 {
		if _, err := d.Eval(e.Context(), call(echo, nil, "x")); err != nil {
			e.Error(err)
		}
	}
	select {
	case err := <-waits:
		e.Errorf("it waited no longer than 20 calls took: %v", err)
	default:
	}
	if err := <-waits; err != nil {
		e.Error(err)
	}
}

// A library may expect every reply within 3 s.
func caseWaitForLong(e *env) {
	d := e.driver()
	_, acked, err := d.EvalWait(e.Context(), call(echo, nil, "x"), 1, 3500*time.Millisecond)
	if acked != 0 || err != nil {
		e.Errorf("%d, %v", acked, err)
	}
}

// Without the right the script has run, and the server says what is missing.
func caseWaitRefused(e *env) {
	d := e.driver()
	e.server.MustDo("ACL", "SETUSER", "default", "-wait")
	_, _, err := d.EvalWait(e.Context(), call(incr, []string{"k"}, "x"), 1, time.Second)
	if code(err) != "NOPERM" || !strings.Contains(err.Error(), "'wait'") {
		e.Errorf("not allowed: %v", err)
	}
	works(e, d)
}

// What the script says comes before what WAIT says, and is not changed.
func caseWaitErrors(e *env) {
	d := e.driver()
	_, _, err := d.EvalWait(e.Context(), call(refuse, nil, "ZAMOK no"), 0, time.Second)
	var se *driver.ServerError
	if !errors.As(err, &se) || se.Text != "ZAMOK no" {
		e.Errorf("refused by the script: %v", err)
	}
}

// In a cluster it is the primary of the call's slot that waits for its own replica, also
// after another one has become that.
func caseClusterWait(e *clusterEnv) {
	waits := func() {
		for _, key := range threeKeys {
			eventually(e, "the replica of a slot", func() bool {
				_, acked, err := e.driver.EvalWait(e.Context(), call(incr, []string{key}, "x"), 1, time.Second)
				return acked == 1 && err == nil
			})
		}
	}
	waits()
	e.cluster.Failover(threeSlots[0])
	waits()
	e.cluster.Replica(threeSlots[1]).Pause()
	if _, acked, err := e.driver.EvalWait(e.Context(), call(incr, threeKeys[1:2], "x"), 1, 300*time.Millisecond); acked != 0 || err != nil {
		e.Errorf("a replica that stands still was counted: %d, %v", acked, err)
	}
}
