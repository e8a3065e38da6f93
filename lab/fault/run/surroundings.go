package run

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// about is where figures come from.
type about struct {
	Command  string // that plays the same
	Revision string // of zamok
	Machine  string
	Started  time.Time
}

// surroundings is what is known before anything is played.
func surroundings() about {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		out = []byte("unknown")
	}
	return about{
		Revision: strings.TrimSpace(string(out)),
		Machine:  fmt.Sprintf("%s, %s/%s with %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Started:  time.Now(),
	}
}

func (a about) text(servers []string) string {
	on := append(servers, a.Machine)
	return fmt.Sprintf("zamok at %s on %s; %s, for %v; in the folder lab: `%s`.\n",
		a.Revision, strings.Join(on, ", "), a.Started.UTC().Format(time.DateOnly), time.Since(a.Started).Round(time.Second), a.Command)
}
