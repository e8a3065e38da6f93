package traffic

import (
	"os"
	"testing"
)

// workerEnv makes this binary a worker.
const workerEnv = "ZAMOK_FAULT_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(Main(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
