package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/inspect"
)

// mostSeries bounds how many locks are named in the metrics: each is a series that
// Prometheus keeps, and only what is in trouble is worth one.
const mostSeries = 50

// writeMetrics writes the file. What was found has been printed by then, so a
// failure is told beside it, and is no reason to say that all is well.
func (a *app) writeMetrics(f *checkFlags, r *inspect.Report) {
	err := replaceFile(f.textfile, metrics(r, f.server.prefix, time.Now()))
	if err == nil {
		return
	}
	a.talk.fail("cannot write the metrics: %v", err)
	a.talk.hint("this user must be allowed to create files in that folder: the file is replaced, not written into")
	if a.code == checkOK {
		a.code = checkUnknown
	}
}

// replaceFile puts a file in the place of another in one step, since the
// collector may read it at any moment.
func replaceFile(name string, text []byte) error {
	if is, err := os.Lstat(name); err == nil && !is.Mode().IsRegular() { // for root that would be the end of /dev/stdout
		return fmt.Errorf("%s is there and is no regular file", name)
	}
	beside, err := os.CreateTemp(filepath.Dir(name), ".zamok-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) // finds nothing when all went well
	_, err = beside.Write(text)
	err = errors.Join(err, beside.Chmod(0o644), beside.Close()) // the collector is another user
	if err != nil {
		return err
	}
	return os.Rename(beside.Name(), name)
}

// metrics are the report in the text format of Prometheus.
func metrics(r *inspect.Report, prefix string, now time.Time) []byte {
	m := &exposition{}
	if prefix != "" { // files for several prefixes lie in one folder
		m.common = []string{"prefix", prefix}
	}
	m.gauge("zamok_locks_held", "Locks that are held, and semaphores of which a permit is.", float64(r.Held))
	m.gauge("zamok_holders", "Holders of all locks: several of a semaphore, and of a lock that readers have.", float64(r.Holders))
	m.gauge("zamok_waiters", "Waiters of all locks.", float64(r.Waiting))
	m.gauge("zamok_processes", "Processes that use locks and live.", float64(r.Processes))
	m.gauge("zamok_processes_silent", "Processes that should have said that they live and have not.", float64(r.Silent))
	m.gauge("zamok_longest_hold_seconds", "How long the lock that was held longest has been held.", r.LongestHold.Seconds())
	m.gauge("zamok_longest_wait_seconds", "How long the one who has waited longest has waited.", r.LongestWait.Seconds())
	m.head("zamok_problems", "Problems of each kind.")
	for _, kind := range kindsOf(r) {
		m.sample("zamok_problems", float64(r.Counts[kind]), "kind", kind)
	}
	m.head("zamok_problem", fmt.Sprintf("1 for each lock in trouble, for the first %d of them.", mostSeries))
	seen := map[[2]string]bool{}
	for _, p := range r.Problems {
		for _, name := range namesOf(p) {
			// A series may be in the file but once; two locks can have one name, or one when what is no UTF-8 is replaced.
			if one := [2]string{p.Kind, labelValue(name)}; !seen[one] && len(seen) < mostSeries {
				seen[one] = true
				m.sample("zamok_problem", 1, "kind", p.Kind, "lock", name, "critical", strconv.FormatBool(p.Critical))
			}
		}
	}
	m.gauge("zamok_check_timestamp_seconds", "When this was written, by the clock of the machine that wrote it.", float64(now.UnixMilli())/1000)
	return m.text.Bytes()
}

func namesOf(p inspect.Problem) []string {
	if p.Deadlock == nil {
		return []string{p.Lock.Title()}
	}
	var names []string
	for _, m := range p.Deadlock.Members {
		names = append(names, m.Title())
	}
	return names
}

// exposition is text in Prometheus' format.
type exposition struct {
	text   bytes.Buffer
	common []string // labels of all, name and value in turn
}

func (m *exposition) gauge(name, help string, value float64) {
	m.head(name, help)
	m.sample(name, value)
}

func (m *exposition) head(name, help string) {
	fmt.Fprintf(&m.text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

func (m *exposition) sample(name string, value float64, labels ...string) {
	labels = append(append([]string{}, m.common...), labels...)
	m.text.WriteString(name)
	for n := 0; n < len(labels); n += 2 {
		separator := ","
		if n == 0 {
			separator = "{"
		}
		fmt.Fprintf(&m.text, `%s%s="%s"`, separator, labels[n], labelValue(labels[n+1]))
	}
	if len(labels) > 0 {
		m.text.WriteString("}")
	}
	m.text.WriteString(" " + strconv.FormatFloat(value, 'f', -1, 64) + "\n")
}

// labelValue escapes what the format does, and makes the text UTF-8, without which
// the whole file would be refused.
func labelValue(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}
