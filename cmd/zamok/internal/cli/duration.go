package cli

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// duration is a flag: plain seconds (30, 0.5) or Go's form (1m30s, 500ms).
type duration time.Duration

func (d *duration) Set(s string) error {
	v, err := parseDuration(s)
	if err != nil {
		return err
	}
	*d = duration(v)
	return nil
}

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Type() string { return "duration" }

var errDuration = errors.New("write seconds, such as 30 or 0.5, or a duration, such as 500ms, 1m30s or 2h")

func parseDuration(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if seconds, plain := strconv.ParseFloat(s, 64); plain == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > float64(math.MaxInt64/int64(time.Second)) {
			return 0, errDuration
		}
		v, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil {
		return 0, errDuration
	}
	if v < 0 {
		return 0, errors.New("it is negative")
	}
	return v, nil
}
