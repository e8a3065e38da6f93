package drivertest_test

import (
	"errors"
	"testing"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

func TestServer(t *testing.T) {
	s := drivertest.StartServer(t, "--maxmemory", "50mb")
	if got := s.MustDo("PING"); got != "PONG" {
		t.Errorf("PING: %v", got)
	}
	if got, _ := s.MustDo("CONFIG", "GET", "maxmemory").([]any); len(got) != 2 || got[1] != "52428800" {
		t.Errorf("own argument: %v", got)
	}
	_, err := s.Do("GET", "a", "b")
	var se *driver.ServerError
	if !errors.As(err, &se) || se.Code() != "ERR" {
		t.Errorf("server error: %v", err)
	}
}

func TestServerCounts(t *testing.T) {
	s := drivertest.StartServer(t)
	if got := s.Commands(); got.Total() != 0 {
		t.Errorf("a fresh server has run %v", got)
	}
	before := s.Commands()
	s.MustDo("SET", "k", "v")
	s.MustDo("EVAL", "redis.call('GET', KEYS[1]) return redis.call('GET', KEYS[1])", "1", "k")
	got := s.Commands().Since(before)
	if got["set"] != 1 || got["get"] != 2 || got["eval"] != 1 || got.Total() != 4 {
		t.Errorf("counted %v", got)
	}
}

func TestServerRestart(t *testing.T) {
	s := drivertest.StartServer(t)
	addr := s.Addr()
	s.MustDo("SET", "k", "v")
	s.Restart()
	if s.Addr() != addr {
		t.Errorf("moved from %s to %s", addr, s.Addr())
	}
	if got := s.MustDo("EXISTS", "k"); got != int64(0) {
		t.Errorf("a key outlived SIGKILL without persistence")
	}
	s.Stop()
	if _, err := s.Do("PING"); err == nil {
		t.Error("a stopped server answers")
	}
	s.Restart()
	s.MustDo("PING")
}

func TestServerPause(t *testing.T) {
	s := drivertest.StartServer(t)
	s.MustDo("PING")
	s.Pause()
	answered := make(chan error, 1)
	go func() {
		_, err := s.Do("PING")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a paused server answers: %v", err)
	default:
	}
	s.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}
