//go:build unix

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zamok-go/zamok/driver/drivertest"
)

func (s *stage) startMembers(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 1, "members N ARG...")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		m := drivertest.StartServer(s.t, args[1:]...)
		s.members = append(s.members, m)
		ts.Setenv(fmt.Sprint("M", i+1), m.URL())
		ts.Setenv(fmt.Sprint("TWIN", i+1), strings.Replace(m.URL(), "127.0.0.1", "localhost", 1))
	}
}

func (s *stage) member(ts *testscript.TestScript, neg bool, args []string) *drivertest.Server {
	want(ts, !neg && len(args) >= 1, "stopmember N")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	return s.members[n-1]
}

func (s *stage) stopMember(ts *testscript.TestScript, neg bool, args []string) {
	s.member(ts, neg, args).Kill()
}

func (s *stage) pauseMember(ts *testscript.TestScript, neg bool, args []string) {
	s.member(ts, neg, args).Pause()
}

func (s *stage) resumeMember(ts *testscript.TestScript, neg bool, args []string) {
	s.member(ts, neg, args).Resume()
}

func (s *stage) configMember(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, len(args) == 3, "configmember N NAME VALUE")
	_, err := s.member(ts, neg, args).Do("CONFIG", "SET", args[1], args[2])
	ts.Check(err)
}
