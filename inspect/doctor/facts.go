package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// facts are what the server says of itself. What it says in INFO is taken from
// there, since hosted servers refuse CONFIG.
type facts struct {
	info     map[string]string // nil: may not be read
	settings map[string]string // nil: may not be read
	noInfo   string            // the server's words
	noConfig string
	node     []string // of the deployment's quarantine; not four: there is none
	conf     Config
}

// asked are the settings that INFO does not tell. They are read one by one: all
// at once, which old servers do not know, or *, which has the passwords in it, are
// no way.
var asked = []string{
	"save", "appendfsync", "no-appendfsync-on-rewrite", "stop-writes-on-bgsave-error", "min-replicas-to-write", "min-replicas-max-lag",
	"replica-read-only", "client-output-buffer-limit", "timeout", "tcp-keepalive", "lua-time-limit",
}

func (e *exam) gather(ctx context.Context) error {
	e.facts = facts{conf: e.conf}
	for _, section := range [][]string{{"INFO"}, {"INFO", "commandstats"}, {"INFO", "latencystats"}} {
		reply, refused, err := e.ask(ctx, section...)
		if err != nil {
			return err
		}
		if refused != "" {
			e.facts.noInfo = refused
			break
		}
		if e.facts.info == nil {
			e.facts.info = map[string]string{}
		}
		parseInfo(e.facts.info, fmt.Sprint(reply))
	}
	for _, name := range asked {
		reply, refused, err := e.ask(ctx, "CONFIG", "GET", name)
		if err != nil {
			return err
		}
		if refused != "" {
			e.facts.settings, e.facts.noConfig = nil, refused
			break
		}
		if e.facts.settings == nil {
			e.facts.settings = map[string]string{}
		}
		if pair := texts(reply); len(pair) == 2 {
			e.facts.settings[name] = pair[1]
		}
	}
	return nil
}

// parseInfo reads the lines name:value.
func parseInfo(into map[string]string, text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(name, "#") {
			into[name] = value
		}
	}
}

// parts reads a value of the form "a=1,b=2".
func parts(value string) map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if name, v, ok := strings.Cut(part, "="); ok {
			m[name] = v
		}
	}
	return m
}

// num returns a number of INFO, 0 when there is none.
func (f facts) num(name string) int64 {
	n, _ := strconv.ParseInt(f.info[name], 10, 64)
	return n
}

// setting returns a number of CONFIG, and whether it could be read.
func (f facts) setting(name string) (int64, bool) {
	n, err := strconv.ParseInt(f.settings[name], 10, 64)
	return n, err == nil
}

func (f facts) sentinel() bool {
	return f.info["redis_mode"] == "sentinel" || f.info["server_mode"] == "sentinel" // Valkey may use the second name
}

// texts returns the elements of a reply that is a list.
func texts(reply any) []string {
	list, _ := reply.([]any)
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// blind says what could not be looked at. Without INFO most of it could not, so
// that silence would be worth nothing; without CONFIG some settings.
func blind(f facts) []Finding {
	var out []Finding
	if f.noInfo != "" {
		out = append(out, Finding{
			Check: "info", Severity: Warning, Found: "INFO is refused: " + f.noInfo,
			Reason: "Role, version, eviction, memory, persistence, replicas, clients and pauses of the server were not looked at.",
			Remedy: instead(f.noInfo, "+info"),
		})
	}
	if f.noConfig != "" {
		out = append(out, Finding{
			Check: "config", Severity: Note, Found: "CONFIG GET is refused: " + f.noConfig,
			Reason: "These settings were not looked at: " + strings.Join(asked, ", ") + ".",
			Remedy: instead(f.noConfig, "+config|get"),
		})
	}
	return out
}

// instead says what helps when a command is refused: a right, or where there is
// no such command another way.
func instead(refused, rule string) string {
	if strings.HasPrefix(refused, "NOPERM") {
		return "Ask as a user that has the right " + rule + " as well: zamok doctor --acl USER --operator prints it."
	}
	return "Look where the server's host shows its settings."
}
