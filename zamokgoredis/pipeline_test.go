package zamokgoredis

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// A client that has not learned yet who the servers of the cluster are, and cannot,
// holds no pipeline up: it would ask anew for each call.
func TestEvalAllBeforeTheClusterIsKnown(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{silent.Addr().String()}})
	defer c.Close()
	calls := make([]driver.Call, 3)
	for i, key := range []string{"a", "b", "c"} {
		calls[i] = driver.Call{Script: driver.NewScript("one", "return 1"), Keys: []string{key}, Limit: 100 * time.Millisecond}
	}
	start := time.Now()
	for _, r := range New(c).EvalAll(t.Context(), calls) {
		if !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("err = %v", r.Err)
		}
	}
	if took := time.Since(start); took > 2*time.Second { // the library reads for 3 s
		t.Errorf("calls of 100 ms took %v", took)
	}
}
