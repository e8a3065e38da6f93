// Package result keeps the figures of the race, and judges them.
package result

import (
	"math"
	"slices"
)

// Spread is what a figure was over the repetitions.
type Spread struct {
	Median, Low, High float64 // the quartiles
	N                 int
}

// SpreadOf sums figures up. Of three or less Low and High are the least and the most,
// since quartiles between them would show less than was seen.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	v := slices.Sorted(slices.Values(values))
	s := Spread{Median: quantile(v, 0.5), Low: quantile(v, 0.25), High: quantile(v, 0.75), N: len(v)}
	if len(v) <= 3 {
		s.Low, s.High = v[0], v[len(v)-1]
	}
	return s
}

// quantile of a sorted list, between its elements where it falls there.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Verdict is what came of a target.
type Verdict string

// The verdicts.
const (
	Met       Verdict = "met"
	Missed    Verdict = "missed"
	Undecided Verdict = "undecided" // the spread straddles the target
	Unknown   Verdict = "not measured"
)

// Judge holds a figure to a bound: at most that, or at least.
func (s Spread) Judge(bound float64, atLeast bool) Verdict {
	low, high := s.Low, s.High
	if atLeast {
		low, high, bound = -s.High, -s.Low, -bound
	}
	switch {
	case s.N == 0:
		return Unknown
	case high <= bound:
		return Met
	case low > bound:
		return Missed
	}
	return Undecided
}

// Worst returns the verdict that is worse.
func Worst(a, b Verdict) Verdict {
	order := []Verdict{Missed, Unknown, Undecided, Met}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}
