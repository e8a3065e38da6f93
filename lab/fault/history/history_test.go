package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func load(t *testing.T, dir string) *History {
	t.Helper()
	h, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newLog(t *testing.T, dir, proc string) *Log {
	t.Helper()
	w, err := NewLog(dir, proc)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	a, b := newLog(t, dir, "a"), newLog(t, dir, "b")
	first := Event{Op: Acquire, Kind: Mutex, Name: "n"}
	a.Begin(&first)
	second := Event{Op: Try, Kind: Mutex, Name: "n"}
	b.Begin(&second)
	first.Outcome, first.Fence = OK, 1_790_000_000_000_001
	a.End(&first)
	b.Fault(Fault{Kind: "cut", From: 5, Detail: "begins"})
	b.Fault(Fault{Kind: "cut", From: 5, Till: 7, Harms: Stalls | Deafens})
	look := Event{Op: Look, Call: Now(), Outcome: OK}
	a.End(&look)
	for _, w := range []*Log{a, b} {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	h := load(t, dir)
	want := []Event{first, second, look}
	if len(h.Events) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(h.Events), len(want), h.Events)
	}
	for i := range want {
		if h.Events[i] != want[i] {
			t.Errorf("event %d is %+v, want %+v", i, h.Events[i], want[i])
		}
	}
	if got := h.Events[1]; got.Outcome != Pending || got.Return != 0 || got.Outcome.Definite() {
		t.Errorf("what did not return is %+v, want it pending", got)
	}
	if want := (Fault{Kind: "cut", From: 5, Till: 7, Harms: Stalls | Deafens}); len(h.Faults) != 1 || h.Faults[0] != want {
		t.Errorf("faults %+v, want %+v", h.Faults, want)
	}
}

func TestTornLastLine(t *testing.T) {
	dir := t.TempDir()
	w := newLog(t, dir, "a")
	e := Event{Op: Acquire}
	w.Begin(&e)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a"+ending)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		if err := os.WriteFile(name, append(text[:len(text):len(text)], text[:n]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if h := load(t, dir); len(h.Events) != 1 || h.Events[0] != e {
			t.Fatalf("with %d bytes of a second line: %+v, want the first alone", n, h.Events)
		}
	}
}

func TestBrokenLineIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"+ending), []byte("{\"p\":\"a\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := Load(dir); err == nil {
		t.Errorf("got %+v, want an error", h)
	}
}

func TestOneFileAProcess(t *testing.T) {
	dir := t.TempDir()
	defer newLog(t, dir, "a").Close()
	if _, err := NewLog(dir, "a"); err == nil {
		t.Error("a second process of that name got the file")
	}
}

func TestClocksAgree(t *testing.T) {
	for tries := 1; ; tries++ {
		from := Now()
		at := At(time.Now())
		if at > Now() {
			t.Fatalf("a moment of the past is said to be to come: %d", at)
		}
		if at >= from-int64(time.Millisecond) {
			return
		}
		if tries == 1000 {
			t.Fatal("a thousand times early by more than a millisecond")
		}
	}
}
