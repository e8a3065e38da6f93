package drivertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func scriptCases() []scriptCase {
	return []scriptCase{
		{"Replies", testReplies},
		{"UserErrors", testUserErrors},
		{"EvalAllOrder", testEvalAllOrder},
		{"EvalAllOneBadCall", testEvalAllOneBadCall},
		{"EvalAllNone", testEvalAllNone},
		{"EndedBefore", testEndedBefore},
		{"Concurrent", testConcurrent},
		{"Messages", testMessages},
		{"CloseStopsHandle", testCloseStopsHandle},
	}
}

// The engine relies on types, not on conversions: a fence is near 2^51 (µs
// since 1970) and must not pass through a float, a lock's name may hold any
// bytes, an empty string is not nil, and "no reply value" is not an error.
func testReplies(t *testing.T, d driver.Driver) {
	binary := "\x00\r\n$-1\xff\xfe юникод"
	for _, tt := range []struct {
		name string
		call driver.Call
		want any
	}{
		{"string", call(echo, nil, "abc"), "abc"},
		{"empty", call(echo, nil, ""), ""},
		{"binary", call(echo, nil, binary), binary},
		{"digits", call(echo, nil, "1764442000123456"), "1764442000123456"},
		{"long", call(echo, nil, strings.Repeat("x", 1<<20)), strings.Repeat("x", 1<<20)},
		{"zero", call(integer, nil, "0"), int64(0)},
		{"negative", call(integer, nil, "-7"), int64(-7)},
		{"microseconds", call(integer, nil, "1764442000123456"), int64(1764442000123456)},
		{"2^53", call(integer, nil, "9007199254740992"), int64(1 << 53)},
		{"nil", call(null, nil), nil},
		{"nested", call(nested, nil, binary, ""), []any{int64(1), binary, []any{}, []any{nil, []any{int64(2), ""}}}},
		{"neither", call(counts, nil), []any{int64(0), int64(0), "", ""}},
		{"keys", call(counts, []string{"{a}1", "{a}" + binary}), []any{int64(2), int64(0), "{a}" + binary, ""}},
		{"both", call(counts, []string{"k"}, "1", ""), []any{int64(1), int64(2), "k", ""}},
	} {
		got, err := d.Eval(t.Context(), tt.call)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %.100v (%T), %v", tt.name, got, got, err)
		}
	}
}

// What a script refuses is told by its first word, and shown to a user whole.
func testUserErrors(t *testing.T, d driver.Driver) {
	for _, text := range []string{
		"ZAMOK no", "ERR wrong TTL: 'x'", "WRONGTYPE Operation against a key", "OOM command not allowed",
	} {
		_, err := d.Eval(t.Context(), call(refuse, nil, text))
		var se *driver.ServerError
		if !errors.As(err, &se) || se.Text != text {
			t.Errorf("%q came as %T %q", text, err, err)
		}
	}
}

// Renewals of a thousand leases go as one pipeline; each result must find its
// lease.
func testEvalAllOrder(t *testing.T, d driver.Driver) {
	calls := make([]driver.Call, 1000)
	for i := range calls {
		calls[i] = call(echo, nil, strconv.Itoa(i))
		if i%3 == 1 {
			calls[i] = call(integer, nil, strconv.Itoa(i))
		}
	}
	for i, r := range d.EvalAll(t.Context(), calls) {
		want := any(strconv.Itoa(i))
		if i%3 == 1 {
			want = int64(i)
		}
		if r.Err != nil || r.Reply != want {
			t.Fatalf("result %d is %v, %v", i, r.Reply, r.Err)
		}
	}
}

// One lease of a wrong type must not cost the others their renewal.
func testEvalAllOneBadCall(t *testing.T, d driver.Driver) {
	for bad := range 3 {
		calls := []driver.Call{call(echo, nil, "0"), call(null, nil), call(echo, nil, "2")}
		want := []any{"0", nil, "2"}
		calls[bad] = call(refuse, nil, "ZAMOK no")
		results := d.EvalAll(t.Context(), calls)
		if len(results) != len(calls) {
			t.Fatalf("%d results", len(results))
		}
		for i, r := range results {
			if i == bad {
				if code(r.Err) != "ZAMOK" || r.Reply != nil {
					t.Errorf("bad call %d: %v, %v", i, r.Reply, r.Err)
				}
			} else if r.Err != nil || r.Reply != want[i] {
				t.Errorf("call %d beside bad call %d: %v, %v", i, bad, r.Reply, r.Err)
			}
		}
	}
}

// A client library may refuse an empty pipeline.
func testEvalAllNone(t *testing.T, d driver.Driver) {
	if got := d.EvalAll(t.Context(), nil); len(got) != 0 {
		t.Errorf("results of no calls: %v", got)
	}
}

// A call whose time is over before it begins ends at once, as what it is: the
// engine computes limits by subtraction.
func testEndedBefore(t *testing.T, d driver.Driver) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	c := call(echo, nil, "x")
	if _, err := d.Eval(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Eval with an ended context: %v", err)
	}
	if r := d.EvalAll(ended, []driver.Call{c, c}); !errors.Is(r[1].Err, context.Canceled) {
		t.Errorf("EvalAll with an ended context: %v", r[1].Err)
	}
	if _, err := d.Subscribe(ended, long, "ch", func(driver.Event) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Subscribe with an ended context: %v", err)
	}
	for _, c.Limit = range []time.Duration{0, -1} {
		if _, err := d.Eval(t.Context(), c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Eval with limit %v: %v", c.Limit, err)
		}
	}
}

// Replies must not be mixed up between callers.
func testConcurrent(t *testing.T, d driver.Driver) {
	var callers sync.WaitGroup
	for g := range 64 {
		callers.Go(func() {
			for i := range 20 {
				text := fmt.Sprintf("%d/%d", g, i)
				if got, err := d.Eval(t.Context(), call(echo, nil, text)); err != nil || got != text {
					t.Errorf("%s: got %v, %v", text, got, err)
				}
				calls := []driver.Call{call(echo, nil, text), call(refuse, nil, "ZAMOK "+text)}
				r := d.EvalAll(t.Context(), calls)
				if r[0].Reply != text || r[1].Err == nil || r[1].Err.Error() != "ZAMOK "+text {
					t.Errorf("%s: got %v", text, r)
				}
			}
		})
	}
	callers.Wait()
}

// A waiter must not be asked to wait before its subscription counts on the
// server, or the wake-up is lost; and what is published first is handled first.
func testMessages(t *testing.T, d driver.Driver) {
	ev := newEvents()
	sub, err := d.Subscribe(t.Context(), long, "ch", ev.handle)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	ev.want(t, driver.Subscribed)
	var sent, got []string
	for i := range 300 {
		sent = append(sent, fmt.Sprintf("\x00\r\n\xff%d", i))
	}
	sent = append(sent, "")
	for _, payload := range sent {
		n, err := d.Eval(t.Context(), call(publish, nil, "ch", payload))
		if err != nil || n != int64(1) {
			t.Fatalf("published to %v, %v", n, err)
		}
	}
	if n, err := d.Eval(t.Context(), call(publish, nil, "other", "x")); n != int64(0) {
		t.Errorf("another channel has %v subscriptions, %v", n, err)
	}
	for range sent {
		got = append(got, ev.want(t, driver.Message).Payload)
	}
	if !slices.Equal(got, sent) {
		t.Errorf("sent %q, got %q", sent, got)
	}
}

// After Close the engine frees what handle uses.
func testCloseStopsHandle(t *testing.T, d driver.Driver) {
	ev, other := newEvents(), newEvents()
	sub, err := d.Subscribe(t.Context(), long, "ch", ev.handle)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := d.Subscribe(t.Context(), long, "ch", other.handle)
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	ev.want(t, driver.Subscribed)
	other.want(t, driver.Subscribed)
	for range 2 {
		if err := sub.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := d.Eval(t.Context(), call(publish, nil, "ch", "late")); err != nil {
		t.Fatal(err)
	}
	if got := other.want(t, driver.Message).Payload; got != "late" {
		t.Errorf("the other subscription got %q", got)
	}
	ev.wantNone(t)
}
