package locker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Canned is zamok on a driver that replies from memory: what is counted on it is the
// engine's own. It is in no table.
func Canned() Kind {
	return Kind{Name: "zamok/canned", Family: Zamok, On: "canned", Open: func(_ string, o Options) (Client, error) {
		const fence = 1 << 50
		return newZamok(canned{
			"acquire": {"granted", strconv.Itoa(fence), o.ttl().Milliseconds(), int64(fence), int64(0), int64(0), "", "0"},
			"release": {"released", strconv.Itoa(fence), int64(0), int64(0), int64(0), int64(0), ""},
		}, func() {}, o)
	}}
}

var errCanned = errors.New("canned: no answer")

// canned has a reply for each script.
type canned map[string][]any

func (c canned) Eval(_ context.Context, call driver.Call) (any, error) {
	return c[call.Script.Name()], nil
}

func (c canned) EvalAll(_ context.Context, calls []driver.Call) []driver.Result {
	out := make([]driver.Result, len(calls))
	for i, call := range calls {
		out[i].Reply = c[call.Script.Name()]
	}
	return out
}

func (canned) Clustered() bool { return false }

// What is not asked of it here is answered by nothing.
func (canned) EvalWait(context.Context, driver.Call, int, time.Duration) (any, int64, error) {
	return nil, 0, errCanned
}

// Do has no answer.
func (canned) Do(context.Context, time.Duration, ...string) (any, error) { return nil, errCanned }

// Subscribe never is one.
func (canned) Subscribe(context.Context, time.Duration, string, func(driver.Event)) (driver.Subscription, error) {
	return nil, errCanned
}
