package keys

import (
	"strings"
	"testing"
)

func TestSlotKnownValues(t *testing.T) {
	// Values from CLUSTER KEYSLOT of Redis 7.0.15.
	for key, want := range map[string]int{"123456789": 12739, "foo": 12182, "{foo}bar": 12182, "a{}b": 13694, "{a}{b}": 15495} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestEverySlotHasAFenceKey(t *testing.T) {
	for slot := range slots {
		if got := Slot("zamok:fence:{" + slotTag(slot) + "}"); got != slot {
			t.Fatalf("slot %d: its fence key is in slot %d", slot, got)
		}
	}
}

func TestKeysOfAName(t *testing.T) {
	tests := []struct{ prefix, name, lock, queue string }{
		{"", "report", "lock:report", "zamok:queue:{lock:report}"},
		{"app:", "report", "app:lock:report", "app:zamok:queue:{app:lock:report}"},
		{"", "user{42}a", "lock:user{42}a", "zamok:queue:{42}lock:user{42}a"},
		{"", "user{42}b", "lock:user{42}b", "zamok:queue:{42}lock:user{42}b"},
		{"{app}:", "x", "{app}:lock:x", "{app}:zamok:queue:{app}{app}:lock:x"},
		{"", "é ü\n", "lock:é ü\n", "zamok:queue:{lock:é ü\n}"},
	}
	for _, tt := range tests {
		s, err := ForName(tt.prefix, tt.name)
		if err != nil {
			t.Errorf("ForName(%q, %q): %v", tt.prefix, tt.name, err)
			continue
		}
		if s.Lock != tt.lock || s.Queue() != tt.queue {
			t.Errorf("ForName(%q, %q) = %q, %q; want %q, %q", tt.prefix, tt.name, s.Lock, s.Queue(), tt.lock, tt.queue)
		}
	}
}

func TestRefusedNames(t *testing.T) {
	for name, want := range map[string]string{
		"":                          "name is empty",
		"a\x00b":                    "NUL",
		strings.Repeat("x", 10<<10): "10240 bytes",
		"a}b{":                      "hash tag",
		"a{}b":                      "hash tag",
		"a}b":                       "hash tag",
	} {
		_, err := ForName("", name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ForName(%.20q): %v, want an error with %q", name, err, want)
		}
	}
	if _, err := ForKey("{app}:", "n", "elsewhere"); err == nil {
		t.Error("an exact key in another slot than the prefix was accepted")
	}
}

// FuzzForName: whatever the name, it is refused or its keys share a slot and
// belong to it alone.
func FuzzForName(f *testing.F) {
	f.Add("", "report", "report2")
	f.Add("app:", "a{b}c", "a{b}d")
	f.Add("{p}", "}{", "{}")
	f.Fuzz(func(t *testing.T, prefix, a, b string) {
		x, err := ForName(prefix, a)
		if err != nil {
			return
		}
		if Slot(x.Lock) != Slot(x.Queue()) || Slot(x.Lock) != Slot(x.Fence()) || Slot(x.Lock) != Slot(x.Call("1")) || Slot(x.Lock) != Slot(x.Once()) {
			t.Fatalf("keys of %q lie in several slots: %+v", a, x)
		}
		y, err := ForName(prefix, b)
		if err != nil || a == b {
			return
		}
		if x.Lock == y.Lock || x.Queue() == y.Queue() || x.Call("1") == y.Call("1") || x.Once() == y.Once() {
			t.Fatalf("%q and %q share a key", a, b)
		}
		for _, k := range []string{x.Lock, x.Queue(), x.Fence()} {
			if !strings.HasPrefix(k, prefix) {
				t.Fatalf("key %q leaves the prefix %q", k, prefix)
			}
		}
	})
}
