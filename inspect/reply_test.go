package inspect

import (
	"math"
	"testing"
	"time"
)

// Numbers that anybody wrote make no nonsense of a time.
func TestTimesOfNonsense(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, math.MaxInt64, math.MaxInt64 / 2} {
		if d := since(n, 1700000000000000); d != 0 {
			t.Errorf("since %d: %v", n, d)
		}
		if d := millis(n); (d < 0) || (n > 0) != (d > 100*365*24*time.Hour) {
			t.Errorf("%d ms: %v", n, d)
		}
	}
}
