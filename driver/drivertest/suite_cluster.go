package drivertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// RunCluster tries what package driver asks of a driver for a cluster. newDriver
// returns a driver on a new client for the cluster whose nodes are at addrs, in the
// way of that of Run.
func RunCluster(t *testing.T, newDriver func(t testing.TB, addrs []string) driver.Driver) {
	for _, c := range []clusterCase{
		{"SubscribePlain", caseClusterSubscribePlain, nil},
		{"SubscribeSharded", caseClusterSubscribeSharded, nil},
		{"SlotMoves", caseClusterSlotMoves, nil},
		{"SlotHasMoved", caseClusterSlotHasMoved, nil},
		{"SlotIsMoving", caseClusterSlotIsMoving, nil},
		{"Failover", caseClusterFailover, nil},
		{"FailedOver", caseClusterFailedOver, nil},
		{"Wait", caseClusterWait, nil},
		{"PrimaryDies", caseClusterPrimaryDies, nil},
		{"ServerHangs", caseClusterServerHangs, []string{"--cluster-node-timeout", "60000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchLeaks(t)
			cluster := StartCluster(t, 3, 1, c.args...)
			d := newDriver(t, cluster.Addrs())
			if !d.Clustered() {
				t.Fatal("it does not know that this is a cluster")
			}
			c.run(&clusterEnv{TB: t, cluster: cluster, driver: d})
		})
	}
}

type clusterCase struct {
	name string
	run  func(e *clusterEnv)
	args []string
}

type clusterEnv struct {
	testing.TB

	cluster *Cluster
	driver  driver.Driver
}

// Three keys, one in each third of the slots, and these slots.
var (
	threeKeys  = [3]string{"b", "c", "a"}
	threeSlots = [3]int{3300, 7365, 15495}
)

// channelOf is a sharded channel in the slot of a key.
func channelOf(key string) string { return "inbox:{" + key + "}" }

// spublish sends to a channel and says how many heard it.
var spublish = driver.NewScript("spublish", "return redis.call('SPUBLISH', ARGV[1], ARGV[2])")

// listeners is how many the primary of the i-th key's slot counts at its channel. It is
// asked past the driver, which would learn by a call where the slot is.
func (e *clusterEnv) listeners(i int) any {
	p := e.cluster.primary(threeSlots[i])
	if p == nil {
		return nil
	}
	v, _ := p.Do("PUBSUB", "SHARDNUMSUB", channelOf(threeKeys[i]))
	if list, _ := v.([]any); len(list) == 2 {
		return list[1]
	}
	return nil
}

// heard waits until the primary of the i-th key's slot counts one who listens, and a
// message of a script arrives.
func (e *clusterEnv) heard(ev *events, i int, payload string) {
	e.Helper()
	eventually(e, "the primary to know who listens", func() bool { return e.listeners(i) == int64(1) })
	key := threeKeys[i]
	var n any
	eventually(e, "the script to run", func() bool { // a client may have its map from a node that does not know yet
		var err error
		n, err = e.driver.Eval(e.Context(), driver.Call{Script: spublish, Keys: []string{key}, Args: []string{channelOf(key), payload}, Limit: long})
		return err == nil
	})
	if n != int64(1) {
		e.Fatalf("%v heard it", n)
	}
	for {
		if m := ev.next(e); m.Kind == driver.Message {
			if m.Payload != payload {
				e.Fatalf("got %q, want %q", m.Payload, payload)
			}
			return
		}
	}
}

func (e *clusterEnv) subscribe(channel string) *events {
	e.Helper()
	ev := newEvents()
	sub, err := e.driver.Subscribe(e.Context(), long, channel, ev.handle)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { sub.Close() })
	ev.want(e, driver.Subscribed)
	return ev
}

// subscribeSometime tries until the driver has learned where the channel is.
func (e *clusterEnv) subscribeSometime(channel string) *events {
	e.Helper()
	ev := newEvents()
	eventually(e, "a subscription at the new place", func() bool {
		sub, err := e.driver.Subscribe(e.Context(), time.Second, channel, ev.handle)
		if err == nil {
			e.Cleanup(func() { sub.Close() })
		}
		return err == nil
	})
	return ev
}

// What is published at any node reaches a plain subscription: operators need not
// know where it is.
func caseClusterSubscribePlain(e *clusterEnv) {
	ev := e.subscribe("inbox")
	for i, s := range e.cluster.Nodes() {
		payload := fmt.Sprint(i)
		eventually(e, "what node "+payload+" publishes", func() bool { // a node drops it while a link to another is made anew
			s.MustDo("PUBLISH", "inbox", payload)
			for {
				select {
				case m := <-ev.ch:
					if m.Kind == driver.Message && m.Payload == payload {
						return true
					}
				default:
					return false
				}
			}
		})
	}
}

// The primary of each slot counts who listens there, and scripts reach them.
func caseClusterSubscribeSharded(e *clusterEnv) {
	for i, key := range threeKeys {
		ev := e.subscribe(channelOf(key))
		if n := e.listeners(i); n != int64(1) {
			e.Errorf("the primary of %s counts %v", key, n)
		}
		e.heard(ev, i, "hello")
		ev.wantNone(e)
	}
}

// A slot that goes to another server takes its channels along: that is told, and
// the new place found without help.
func caseClusterSlotMoves(e *clusterEnv) {
	ev := e.subscribe(channelOf(threeKeys[0]))
	for _, to := range []int{1, 2, 0} {
		e.cluster.MigrateSlot(threeSlots[0], e.cluster.Nodes()[to], nil)
		ev.want(e, driver.Broken)
		ev.want(e, driver.Subscribed)
		e.heard(ev, 0, fmt.Sprint("at ", to))
		ev.wantNone(e)
	}
}

// The client does not know yet when it is asked for the first time.
func caseClusterSlotHasMoved(e *clusterEnv) {
	e.subscribe("any") // so that it has a map of the slots
	e.cluster.MigrateSlot(threeSlots[0], e.cluster.Nodes()[1], nil)
	e.heard(e.subscribeSometime(channelOf(threeKeys[0])), 0, "found")
}

// While a slot is on its way, a script that names one key finds it on either side;
// one that names several is told to try again, and nothing was done.
func caseClusterSlotIsMoving(e *clusterEnv) {
	here, there := "here{"+threeKeys[0]+"}", "there{"+threeKeys[0]+"}"
	run := func(keys ...string) error {
		_, err := e.driver.Eval(e.Context(), driver.Call{Script: incr, Keys: keys, Limit: 2 * time.Second})
		return err
	}
	if err := run(here); err != nil {
		e.Fatal(err)
	}
	e.cluster.MigrateSlot(threeSlots[0], e.cluster.Nodes()[1], func() {
		if err := errors.Join(run(here), run(there)); err != nil {
			e.Errorf("one key: %v", err)
		}
		if err := run(here, there); code(err) != "TRYAGAIN" && !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("two keys: %v", err)
		}
	})
	for key, want := range map[string]string{here: "2", there: "1"} {
		if v, err := e.driver.Eval(e.Context(), call(readCounter, []string{key})); v != want || err != nil {
			e.Errorf("%s is %v, want %s (%v)", key, v, want, err)
		}
	}
}

// After a planned failover the new primary counts who listens, though the old one
// takes and keeps subscriptions and the driver is used for nothing else.
func caseClusterFailover(e *clusterEnv) {
	ev := e.subscribe(channelOf(threeKeys[0]))
	for i := range 2 {
		e.cluster.Failover(threeSlots[0])
		e.heard(ev, 0, fmt.Sprint("after ", i))
	}
}

// The client does not know yet when it is asked for the first time.
func caseClusterFailedOver(e *clusterEnv) {
	e.subscribe("any") // so that it has a map of the slots
	e.cluster.Failover(threeSlots[0])
	e.heard(e.subscribeSometime(channelOf(threeKeys[0])), 0, "found")
}

// And after one that nobody planned.
func caseClusterPrimaryDies(e *clusterEnv) {
	ev := e.subscribe(channelOf(threeKeys[0]))
	e.cluster.Primary(threeSlots[0]).Kill()
	ev.want(e, driver.Broken)
	e.heard(ev, 0, "after it")
}

// A server that hangs delays and fails no call to another, however the calls come:
// also those that are the first of their script.
func caseClusterServerHangs(e *clusterEnv) {
	const limit = time.Second
	e.Helper()
	calls := func(script *driver.Script) (calls []driver.Call) {
		for range 20 {
			for _, key := range threeKeys {
				calls = append(calls, driver.Call{Script: script, Keys: []string{key}, Args: []string{"x"}, Limit: limit})
			}
		}
		return calls
	}
	for i, r := range e.driver.EvalAll(e.Context(), calls(echo)) {
		if r.Err != nil || r.Reply != "x" {
			e.Fatalf("call %d: %v, %v", i, r.Reply, r.Err)
		}
	}
	// Newer go-redis asks any server for COMMAND before its first command that is no
	// pipeline, and once: that is not what this is about.
	if v, err := e.driver.Eval(e.Context(), call(echo, []string{threeKeys[0]}, "x")); v != "x" || err != nil {
		e.Fatalf("%v, %v", v, err)
	}
	hung := e.cluster.Primary(threeSlots[1])
	hung.Pause()
	defer hung.Resume()
	for _, script := range []*driver.Script{echo, driver.NewScript("new", "return ARGV[1]")} {
		start := time.Now()
		for i, r := range e.driver.EvalAll(e.Context(), calls(script)) {
			switch {
			case i%3 != 1 && (r.Err != nil || r.Reply != "x"):
				e.Errorf("%v: call %d, to a server that answers: %v, %v", script, i, r.Reply, r.Err)
			case i%3 == 1 && !errors.Is(r.Err, context.DeadlineExceeded):
				e.Errorf("%v: call %d, to the one that hangs: %v, %v", script, i, r.Reply, r.Err)
			}
		}
		if took := time.Since(start); took > limit+slack {
			e.Errorf("%v: took %v", script, took)
		}
	}
	start := time.Now()
	if v, err := e.driver.Eval(e.Context(), call(echo, []string{threeKeys[0]}, "y")); v != "y" || err != nil {
		e.Errorf("a call to another: %v, %v", v, err)
	}
	if took := time.Since(start); took > slack {
		e.Errorf("a call to another took %v", took)
	}
}
