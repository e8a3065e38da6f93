package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Run tries everything that package driver asks of a driver. newDriver returns a
// driver on a new client for the server at url, which is redis://host:port or
// redis://:password@host:port; it closes the client in t.Cleanup, and sets no
// time limits on it that a user would not set. It may make the driver ask for a
// sign of life more often than a user's, so that the suite need not wait 20 s.
//
// Every case has a server of its own and ends with a look for goroutines that
// are left over, so cases do not run in parallel.
func Run(t *testing.T, newDriver func(t testing.TB, url string) driver.Driver) {
	RunScripts(t, func(t testing.TB) driver.Driver { return newDriver(t, StartServer(t).URL()) })
	for _, cases := range [][]serverCase{answerCases(), faultCases(), waitCases(), pubsubCases()} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				watchLeaks(t)
				c.run(&env{TB: t, newDriver: newDriver, server: StartServer(t)})
			})
		}
	}
}

// RunScripts tries the part that needs no server: replies and errors of scripts,
// pipelines of them, and a subscription that is not disturbed. The driver must
// know the scripts of Twins; a server knows them anyway.
func RunScripts(t *testing.T, newDriver func(t testing.TB) driver.Driver) {
	for _, c := range scriptCases() {
		t.Run(c.name, func(t *testing.T) {
			watchLeaks(t)
			c.run(t, newDriver(t))
		})
	}
}

type scriptCase struct {
	name string
	run  func(t *testing.T, d driver.Driver)
}

type serverCase struct {
	name string
	run  func(e *env)
}

// watchLeaks is called first, so that its cleanup runs last: after the client
// is closed.
func watchLeaks(t testing.TB) {
	before := goroutines()
	t.Cleanup(func() {
		if !t.Failed() { // a case that gave up halfway leaves much behind
			checkLeaks(t, before)
		}
	})
}

// env is what a case with a server has.
type env struct {
	testing.TB

	server    *Server
	newDriver func(t testing.TB, url string) driver.Driver
}

// driver returns a driver that is connected to the server and knows the hashes
// of the scripts that it ran here.
func (e *env) driver() driver.Driver { return e.driverAt(e.server.URL()) }

func (e *env) driverAt(url string) driver.Driver {
	e.Helper()
	d := e.newDriver(e, url)
	for _, s := range []*driver.Script{echo, incr, once, readCounter} {
		if _, err := d.Eval(e.Context(), call(s, []string{"warm:up", "warm:counter"}, "x")); err != nil {
			e.Fatalf("first call of %v: %v", s, err)
		}
	}
	return d
}

// long is the limit of a call that is expected to be answered.
const long = 20 * time.Second

// slack is how much later than its limit a call may return in a test. What is
// promised is 100 ms; a machine that is busy with other tests is given five
// times that.
const slack = 500 * time.Millisecond

func call(s *driver.Script, keys []string, args ...string) driver.Call {
	return driver.Call{Script: s, Keys: keys, Args: args, Limit: long}
}

// isServerError says whether the server itself sent the error.
func isServerError(err error) bool {
	var se *driver.ServerError
	return errors.As(err, &se)
}

// code is the first word of what the server sent, or "" for any other error.
func code(err error) string {
	var se *driver.ServerError
	if errors.As(err, &se) {
		return se.Code()
	}
	return ""
}

// works waits until the driver gets through to its server again.
func works(t testing.TB, d driver.Driver) {
	t.Helper()
	eventually(t, "the driver to work again", func() bool {
		v, err := d.Eval(context.Background(), driver.Call{Script: echo, Args: []string{"x"}, Limit: time.Second})
		return err == nil && v == "x"
	})
}
