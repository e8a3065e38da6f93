package keys

import (
	"strings"
	"sync"
)

// slots is the number of hash slots of a cluster, fixed by its protocol.
const slots = 16384

// Slot returns the hash slot of a key: CRC-16/XMODEM of its hash tag, or of the
// whole key where it has none. Source: the Redis Cluster specification.
func Slot(key string) int {
	if t, ok := tag(key); ok {
		key = t
	}
	return int(crc16(key)) % slots
}

// tag returns what stands between the first "{" and the first "}" behind it, if
// there is anything: the part of a key that decides its slot.
func tag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	t, _, ok := strings.Cut(rest, "}")
	return t, ok && t != ""
}

// crc16 takes half a byte a step: a table of sixteen is enough to be quick.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<4 ^ crcTable[crc>>12^uint16(s[i]>>4)]
		crc = crc<<4 ^ crcTable[crc>>12^uint16(s[i]&15)]
	}
	return crc
}

// crcTable holds the multiples of the polynomial 0x1021.
var crcTable = [16]uint16{
	0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
	0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
}

// slotTag returns the short string that stands for a slot in the keys of the
// fence counters: the smallest number, in six octal digits, that falls in the
// slot. There is one counter a slot and not one a name, so that counters, which
// must never expire, stay few however many names there are.
func slotTag(slot int) string {
	return octal(int(slotNumbers()[slot]))
}

// slotNumbers maps a slot to its number. It is a constant table, worked out on
// first use in a few milliseconds. Six octal digits reach every slot; five
// (fewer bits would do) do not, since their images under the CRC are not
// independent.
var slotNumbers = sync.OnceValue(func() *[slots]uint32 {
	var table [slots]uint32
	var found [slots]bool
	for n, left := 0, slots; left > 0; n++ {
		if s := Slot(octal(n)); !found[s] {
			table[s], found[s] = uint32(n), true
			left--
		}
	}
	return &table
})

func octal(n int) string {
	var b [6]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n&7)
		n >>= 3
	}
	return string(b[:])
}
