package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// Space is a network namespace with one way out: a worker in it can be cut off as a
// cable cuts off a machine, so that nothing comes back, not even an error.
type Space struct {
	name string // of the namespace
	link string // the host's end of its way
	host string // the host's address on it
}

var spaces atomic.Int32 // each has its own network

// ip runs the command of that name.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// canSpace says why this machine has no network namespaces for us.
func canSpace() error {
	name := fmt.Sprintf("zamok-%d-try", os.Getpid())
	if err := ip("netns", "add", name); err != nil {
		return err
	}
	defer func() { _ = ip("netns", "del", name) }()
	return ip("-n", name, "link", "set", "lo", "up")
}

func newSpace(h *Host) *Space {
	n := spaces.Add(1)
	id := fmt.Sprintf("%x-%d", os.Getpid(), n)
	s := &Space{name: "zamok-" + id, link: "zh" + id, host: fmt.Sprintf("10.213.%d.1", n%250)}
	inner := "zw" + id
	h.Cleanup(func() { _ = ip("netns", "del", s.name) }) // the link goes with it
	for _, args := range [][]string{
		{"netns", "add", s.name},
		{"link", "add", s.link, "type", "veth", "peer", "name", inner},
		{"link", "set", inner, "netns", s.name},
		{"addr", "add", s.host + "/24", "dev", s.link},
		{"link", "set", s.link, "up"},
		{"-n", s.name, "addr", "add", fmt.Sprintf("10.213.%d.2/24", n%250), "dev", inner},
		{"-n", s.name, "link", "set", "lo", "up"},
		{"-n", s.name, "link", "set", inner, "up"},
	} {
		if err := ip(args...); err != nil {
			h.Fatal(err)
		}
	}
	return s
}

// Cut pulls the cable, and Mend puts it back.
func (s *Space) Cut() error { return ip("link", "set", s.link, "down") }

// Mend ends Cut.
func (s *Space) Mend() error { return ip("link", "set", s.link, "up") }

// Command is what runs a program in it. The process is the program's own.
func (s *Space) Command(args ...string) []string {
	return append([]string{"ip", "netns", "exec", s.name}, args...)
}
