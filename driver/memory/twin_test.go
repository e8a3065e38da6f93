package memory

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

func TestTwinUnderGuard(t *testing.T) {
	s := New()
	s.Define("pay", func(tx *Tx, keys, args []string, fence int64) (any, error) {
		if _, err := tx.HSet(keys[0], "fence", fmt.Sprint(fence)); err != nil {
			return nil, err
		}
		n, err := tx.Incr(keys[1], 5)
		return []any{n, args[0], true, false}, err
	})
	pay := call("guard:pay", []string{"lock", "call:1", "readers", "h", "n"}, "a", "77", "x")
	if got := eval(t, s, pay); got != "absent" {
		t.Fatalf("without the lock: %s", got)
	}
	eval(t, s, acquire("a", ""))
	v, err := s.Eval(t.Context(), pay)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.([]any); got[0] != "ran" || !reflect.DeepEqual(got[7], []any{int64(5), "x", int64(1), nil}) {
		t.Fatalf("reply %v", got)
	}
	if got, _ := s.HGet("h", "fence"); got != "77" {
		t.Fatalf("the twin saw the fence %q, which the caller did not say", got)
	}
	if got := eval(t, s, pay); got != "repeated" {
		t.Fatalf("the second time: %s", got)
	}
	if v, _ := s.Get("n"); v != "5" {
		t.Fatalf("n = %q", v)
	}
}

// The same script under a permit: the fence comes from the caller, and what its twin
// gets is the script's own.
func TestTwinUnderPermit(t *testing.T) {
	s := New()
	s.Define("pay", func(tx *Tx, keys, args []string, fence int64) (any, error) {
		n, err := tx.Incr(keys[0], 5)
		return []any{n, len(keys), args[0], fence}, err
	})
	pay := driver.Call{Script: lua.SemGuard("pay", "return 1"), Keys: []string{"sem", "call:1", "n"}, Args: []string{"a", "77", "x"}, Limit: time.Second}
	if got := eval(t, s, pay); got != "absent" {
		t.Fatalf("without a permit: %s", got)
	}
	for _, token := range []string{"a", "b"} {
		take := call("sem_acquire", []string{"sem", "queue", "fence", "limit"}, token, "10000", "", "0", "x", "2")
		if got := eval(t, s, take); got != "granted" {
			t.Fatalf("%s: %s", token, got)
		}
	}
	v, err := s.Eval(t.Context(), pay)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.([]any); got[0] != "ran" || got[1] != "77" || !reflect.DeepEqual(got[7], []any{int64(5), int64(1), "x", int64(77)}) {
		t.Fatalf("reply %v", got)
	}
	if got := eval(t, s, pay); got != "repeated" {
		t.Fatalf("the second time: %s", got)
	}
}

func TestPlainTwin(t *testing.T) {
	s := New()
	s.Define("plain", func(tx *Tx, keys, args []string, fence int64) (any, error) {
		if err := tx.Set(keys[0], args[0], 1500*time.Microsecond); err != nil {
			return nil, err
		}
		v, _, err := tx.Get(keys[0])
		return v, err
	})
	v, err := s.Eval(t.Context(), call("plain", []string{"k"}, "v"))
	if v != "v" || err != nil {
		t.Fatalf("got %v, %v", v, err)
	}
}

func TestTwinErrors(t *testing.T) {
	s := New()
	_, err := s.Eval(t.Context(), call("guard:none", []string{"lock", "c", "readers"}, "a", "77"))
	if err == nil || !strings.Contains(err.Error(), `Define("none"`) {
		t.Errorf("an undefined script: %v", err)
	}
	s.Define("bad", func(*Tx, []string, []string, int64) (any, error) { return nil, errors.New("no") })
	_, err = s.Eval(t.Context(), call("bad", nil))
	var se *driver.ServerError
	if !errors.As(err, &se) || se.Text != "ERR no" {
		t.Errorf("a twin's own error: %v", err)
	}
}

func TestScanReturnsAllKeys(t *testing.T) {
	s := New()
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("lock:%02d", i)
		s.Set(name, "v", 0)
		s.Set("other:"+name, "v", 0)
		want = append(want, name)
	}
	var got []string
	cursor := "0"
	for range 100 {
		v, err := s.Do(t.Context(), time.Second, "SCAN", cursor, "MATCH", "lock:*", "COUNT", "7")
		if err != nil {
			t.Fatal(err)
		}
		cursor = v.([]any)[0].(string)
		for _, k := range v.([]any)[1].([]any) {
			got = append(got, k.(string))
		}
		if cursor == "0" {
			break
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"a*c", "abbc", true}, {"a*c", "abb", false}, {"a?c", "abc", true},
		{"a[b-d]c", "acc", true}, {"a[^b]c", "abc", false}, {`a\*`, "a*", true}, {`a\*`, "ab", false},
		{"a/*", "a/b/c", true}, {"", "a", false}, {"[", "[", false}, {"[ab", "b", true}, {"**a", "xa", true},
	} {
		if got := match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("match(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}

func TestDo(t *testing.T) {
	s := New()
	if v, err := s.Do(t.Context(), time.Second, "PING"); v != "PONG" || err != nil {
		t.Errorf("PING: %v, %v", v, err)
	}
	_, err := s.Do(t.Context(), time.Second, "GEORADIUS")
	var se *driver.ServerError
	if !errors.As(err, &se) || se.Code() != "ERR" {
		t.Errorf("an unknown command: %v", err)
	}
}
