package run

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/bench/result"
)

// about says where the race takes place. What cannot be found out is left empty.
func (r *race) about(ctx context.Context) result.About {
	a := result.About{
		Date: time.Now().Format(time.DateOnly), Machine: processor(), CPUs: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + content("/proc/sys/kernel/osrelease"),
		Go:     runtime.Version(), Libraries: make(map[string]string), Load: load(),
		Server: server(ctx), Commit: output(ctx, "git", "-C", r.root, "describe", "--always", "--dirty"),
	}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return a
	}
	for _, m := range info.Deps {
		for path, name := range map[string]string{
			"github.com/redis/go-redis/v9": "go-redis", "github.com/redis/rueidis": "rueidis and rueidislock",
			"github.com/go-redsync/redsync/v4": "redsync", "github.com/bsm/redislock": "redislock",
		} {
			if m.Path == path {
				a.Libraries[name] = m.Version
			}
		}
	}
	return a
}

// server is the first line of the program's version, to its third word.
func server(ctx context.Context) string {
	name := os.Getenv("ZAMOK_TEST_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	words := strings.Fields(output(ctx, name, "--version"))
	if len(words) < 3 {
		return ""
	}
	return strings.Replace(strings.Join([]string{words[0], words[2]}, " "), "v=", "", 1)
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func content(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func processor() string {
	for line := range strings.Lines(content("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load is that of the last minute.
func load() string {
	first, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	return first
}
