package drivertest

import "testing"

// What the helper promises is what the tests of locks rely on: a write that no replica
// has is lost with the primary, and all others are not.
func TestSentinel(t *testing.T) {
	Failovers(t)
	s := StartSentinel(t, 3, 2)
	first := s.Primary()
	if first != s.Servers()[0] || len(s.Addrs()) != 3 {
		t.Fatalf("the primary is %s, the Sentinels are %q", first.Addr(), s.Addrs())
	}
	first.MustDo("SET", "kept", "1")
	if n := first.MustDo("WAIT", "2", "5000"); n != int64(2) {
		t.Fatalf("%v replicas have it", n)
	}
	second := s.Failover()
	if second == first || second.MustDo("GET", "kept") != "1" {
		t.Errorf("after the failover %s has %v", second.Addr(), second.MustDo("GET", "kept"))
	}
	s.AwaitReplicas(2)
	s.Partition()
	second.MustDo("SET", "lost", "1")
	second.Kill()
	third := s.AwaitFailover(second)
	if third.MustDo("GET", "kept") != "1" || third.MustDo("GET", "lost") != nil {
		t.Errorf("after the crash: kept is %v, lost is %v", third.MustDo("GET", "kept"), third.MustDo("GET", "lost"))
	}
}
