package drivertest

import (
	"net"
	"strings"
)

// Role is what the server says that it is, "master" or "slave"; empty when it does not
// answer, or is gone.
func Role(s *Server) string {
	v, _ := s.Do("ROLE")
	list, _ := v.([]any)
	if len(list) == 0 {
		return ""
	}
	text, _ := list[0].(string)
	return text
}

// info is what the server says of its replication.
func info(s *Server) string {
	v, _ := s.Do("INFO", "replication")
	text, _ := v.(string)
	return text
}

// Follow makes the server a replica of another one.
func (s *Server) Follow(primary *Server) {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr())
	s.MustDo("REPLICAOF", host, port)
}

// FallBehind cuts the way from a replica to its primary, and to no one else: it lacks
// what is written from now on, until CatchUp, and stays good enough to be promoted. The
// primary and other replicas do not notice, but for one replica less.
//
// It is done with the name under which it asks for data and not with a proxy: Sentinel
// mends the configuration of a replica that has its primary's address from elsewhere, and
// what is on its way already would still come.
func (s *Server) FallBehind() {
	s.t.Helper()
	s.MustDo("CONFIG", "SET", "masteruser", "nobody")
	s.MustDo("CONFIG", "SET", "masterauth", "nothing")
	s.MustDo("CLIENT", "KILL", "TYPE", "master")
	eventually(s.t, "the replica to be alone", func() bool { return strings.Contains(info(s), "master_link_status:down") })
}

// CatchUp ends FallBehind, also of one that was promoted.
func (s *Server) CatchUp() {
	s.t.Helper()
	s.MustDo("CONFIG", "SET", "masteruser", "")
	s.MustDo("CONFIG", "SET", "masterauth", "")
}
