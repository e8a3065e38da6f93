package drivertest

import "testing"

// The helpers themselves: a key stays where its slot goes.
func TestCluster(t *testing.T) {
	Failovers(t)
	c := StartCluster(t, 3, 1)
	const key, slot = "foo", 12182
	first := c.Primary(slot)
	first.MustDo("SET", key, "1")
	c.Failover(slot)
	second := c.Primary(slot)
	if second == first || c.Replica(slot) != first {
		t.Fatal("no failover")
	}
	half := false
	c.MigrateSlot(slot, c.Nodes()[0], func() {
		half = true
		if v, err := second.Do("GET", key); v != "1" || err != nil {
			t.Errorf("half way: %v, %v", v, err)
		}
		if _, err := second.Do("GET", "none{foo}"); code(err) != "ASK" {
			t.Errorf("a key that is not there: %v", err)
		}
	})
	if v := c.Nodes()[0].MustDo("GET", key); v != "1" || !half || c.Primary(slot) != c.Nodes()[0] {
		t.Errorf("after it: %v", v)
	}
	c.Primary(0).Kill()
	eventually(t, "the replica to take over", func() bool {
		for _, s := range c.running() {
			if me, ok := s.view().myself(); ok && me.has(0) {
				return true
			}
		}
		return false
	})
}
