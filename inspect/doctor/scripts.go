package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // of the script
	"slices"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

//go:embed probe.lua
var probeSource string

// probe runs commands in a script, as zamok does: what a user may do in a script
// is what it may do, and a server answers in it as it answers zamok.
var probe = driver.NewScript("doctor", probeSource)

// tryScripts runs what zamok runs, on keys of a random name that nobody has.
func (e *exam) tryScripts(ctx context.Context) error {
	name := "doctor-" + rand.Text()
	set, err := keys.ForName(e.conf.Prefix, name)
	if err != nil {
		return err // cannot be: the prefix was checked
	}
	permits, err := keys.ForSemaphore(e.conf.Prefix, name)
	if err != nil {
		return err
	}
	p := patterns(e.conf.Prefix)
	t := &e.trial
	t.channel = p.channel
	for _, plain := range [][]string{{"+script|load", "SCRIPT", "LOAD", probeSource}, {"+eval", "EVAL", "return 1", "0"}} {
		_, refused, err := e.ask(ctx, plain[1:]...)
		if err != nil {
			return err
		}
		t.note(plain[0], plain[1], "", refused)
	}
	if slices.Contains(t.rules, "+script|load") { // then no driver can run anything
		return e.tryFlush(ctx)
	}
	// The keys of each pattern are tried in a script of their own, or the lack of
	// one pattern would hide what else is missing.
	for _, part := range []struct{ key, stands, pattern string }{
		{set.Lock, lockKey, p.lock}, {permits.Lock, semaphoreKey, p.semaphore}, {set.Queue(), queueKey, p.helpers},
	} {
		if err := e.tryCommands(ctx, t, set, part.key, part.stands, part.pattern); err != nil {
			return err
		}
	}
	if t.clean() { // else it is refused for one of the reasons that are known by now
		if err := e.tryRenew(ctx); err != nil {
			return err
		}
	}
	return e.tryFlush(ctx)
}

// tryRenew runs a script of zamok itself, in its form that only asks. In a cluster
// it does so for names of many slots: a client that does not look for their nodes
// is answered MOVED for some of them.
func (e *exam) tryRenew(ctx context.Context) error {
	names := 1
	if e.facts.num("cluster_enabled") != 0 {
		names = 16
	}
	for range names {
		set, err := keys.ForName(e.conf.Prefix, "doctor-"+rand.Text())
		if err != nil {
			return err
		}
		_, refused, err := e.eval(ctx, lua.Renew, set.One(), []string{"doctor", "0"})
		if err != nil {
			return err
		}
		e.trial.note("+evalsha", "EVALSHA", "", refused)
	}
	return nil
}

// tryCommands runs those that use the key, and those that use none beside the
// queue's.
func (e *exam) tryCommands(ctx context.Context, t *trial, set *keys.Set, key, stands, pattern string) error {
	var tried []need
	var args []string
	words := strings.NewReplacer(stands, key, inbox, keys.Inbox(e.conf.Prefix, set.Name), slotInbox, set.Inbox(set.Name))
	all := needs
	if e.d.Clustered() {
		all = slices.Concat(needs, needsInCluster)
	}
	for _, n := range all {
		if n.try == nil || n.key() != stands {
			continue
		}
		tried = append(tried, n)
		args = append(args, strconv.Itoa(len(n.try)))
		for _, word := range n.try {
			args = append(args, words.Replace(word))
		}
	}
	reply, refused, err := e.eval(ctx, probe, []string{key}, args)
	if err != nil {
		return err
	}
	if refused != "" {
		t.note("+evalsha", "EVALSHA", pattern, refused)
		return nil
	}
	for i, said := range texts(reply) {
		if i < len(tried) {
			t.note(tried[i].rule, tried[i].try[0], pattern, said)
		}
	}
	return nil
}

// tryFlush asks whether this user may delete all locks at once. It is asked, and
// not tried: servers before 7.0 cannot be asked, and say nothing of it.
func (e *exam) tryFlush(ctx context.Context) error {
	who, refused, err := e.ask(ctx, "ACL", "WHOAMI")
	if err != nil || refused != "" {
		return err
	}
	user, _ := who.(string)
	may, refused, err := e.ask(ctx, "ACL", "DRYRUN", user, "FLUSHALL")
	if err == nil && refused == "" && may == "OK" {
		e.add(Finding{
			Check: "user", Severity: Note, Found: "the user " + strconv.Quote(user) + " may run FLUSHALL",
			Reason: "Who deletes all keys deletes all locks, and others get them while their holders work.",
			Remedy: "Give locks a user of their own with the rights that zamok doctor --acl USER prints.",
		})
	}
	return err
}

// trial is what the tries found to be missing.
type trial struct {
	channel string   // the pattern of channels
	rules   []string // rights
	unknown []string // commands
	writes  string   // the server's words to a write, when it refuses them
	other   string   // other words of the server, the first
}

func (t *trial) clean() bool {
	return len(t.rules)+len(t.unknown) == 0 && t.writes == "" && t.other == ""
}

// note sorts the server's words to a command, which needs the right rule, and of
// keys the pattern.
func (t *trial) note(rule, command, pattern, said string) {
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	switch kindOf(said) {
	case fine:
	case deniedCommand:
		t.rules = add(t.rules, rule)
	case deniedKey:
		t.rules = add(t.rules, pattern)
	case deniedChannel:
		t.rules = add(t.rules, t.channel)
	case noCommand:
		t.unknown = add(t.unknown, command)
	case noWrites:
		t.writes = said
	case other:
		t.other = cmp.Or(t.other, said)
	}
}

// kind is what the server's words mean.
type kind int

const (
	fine kind = iota
	deniedCommand
	deniedKey
	deniedChannel
	noCommand
	noWrites
	other
)

// kindOf reads the words of all versions, in a script and outside:
//
//	NOPERM this user has no permissions to run the 'get' command
//	NOPERM No permissions to access a key
//	ERR The user executing the script can't publish to the channel mentioned in the command
//	ERR The user executing the script can't access at least one of the keys mentioned in the command arguments
//	ERR ACL failure in script: User app has no permissions to run the 'get' command
//	@user_script: 1: Unknown Redis command called from Lua script
func kindOf(said string) kind {
	low := strings.ToLower(said)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case said == "":
		return fine
	case has("readonly", "oom ", "misconf", "noreplicas"):
		return noWrites
	case has("noperm", "acl failure", "user executing the script"):
		switch {
		case has("channel"):
			return deniedChannel
		case has("access") && has("key"):
			return deniedKey
		}
		return deniedCommand
	case has("unknown") && has("command"):
		return noCommand
	}
	return other
}

func (t *trial) findings() []Finding {
	out := lacking(t.rules)
	if len(t.unknown) > 0 {
		out = append(out, Finding{
			Check: "scripts", Severity: Critical, Found: "the server does not know " + strings.Join(t.unknown, ", "),
			Reason: "Locks do not work then.",
			Remedy: "It is older than 6.2, another program than Redis or Valkey, or rename-command took them away: undo that.",
		})
	}
	if t.writes != "" {
		out = append(out, refusing(t.writes))
	}
	if t.other != "" && len(t.unknown) == 0 { // a server that is too old misreads what it does not know
		out = append(out, strange(t.other))
	}
	if len(out) == 0 {
		out = append(out, Finding{Check: "scripts", Severity: OK, Found: "scripts run, and this user has all rights that locks need"})
	}
	return out
}

// lacking makes one finding of all rights that are missed in the same way.
func lacking(rules []string) []Finding {
	var out []Finding
	for _, rule := range rules {
		n := need{rule: rule, severity: Critical, without: nothingWorks} // a pattern of keys
		if i := slices.IndexFunc(needs, func(n need) bool { return n.rule == rule }); i >= 0 {
			n = needs[i]
		} else if strings.HasPrefix(rule, "&") {
			n.severity, n.without = Warning, theyPoll
		} else if rule == patterns("").semaphore {
			n.severity, n.without = Warning, noSemaphores
		}
		same := slices.IndexFunc(out, func(f Finding) bool { return f.Reason == n.without })
		if same < 0 {
			same = len(out)
			out = append(out, Finding{
				Check: "rights", Severity: n.severity, Found: "this user lacks", Reason: n.without,
				Remedy: "ACL SETUSER USER",
			})
		}
		out[same].Found += " " + rule
		out[same].Remedy += " " + rule
	}
	return out
}

// refusing is the finding that no lock can be taken now, whatever the settings.
func refusing(said string) Finding {
	f := Finding{
		Check: "writes", Severity: Critical, Found: "writes are refused: " + said, Reason: "No lock can be taken now.",
		Remedy: "See the server's log.",
	}
	switch {
	case strings.Contains(said, "READONLY"):
		f.Remedy = "Give the address of the primary, or a Sentinel URL."
	case strings.Contains(said, "OOM "):
		f.Reason = "The memory is full. No new lock can be taken; renewal and release still work."
		f.Remedy = "Raise maxmemory, or remove keys."
	case strings.Contains(said, "MISCONF"):
		f.Reason = "No lock can be taken, renewed or released: all leases end."
		f.Remedy = "The disk is full or cannot be written: see the server's log."
	case strings.Contains(said, "NOREPLICAS"):
		f.Reason = "No lock can be taken, renewed or released: all leases end."
		f.Remedy = "Bring back the replicas, or lower min-replicas-to-write."
	}
	return f
}

// strange is what a script was answered that is none of all that.
func strange(said string) Finding {
	f := Finding{
		Check: "scripts", Severity: Critical, Found: "a script was answered " + strconv.Quote(said), Reason: "Locks do not work.",
		Remedy: "See the server's log.",
	}
	switch code, _, _ := strings.Cut(said, " "); code {
	case "MOVED", "ASK", "CROSSSLOT":
		f.Remedy = "The server is a node of a cluster, and this client does not look for the node that has the lock: use a client for clusters, or a server that is none."
	case "CLUSTERDOWN":
		f.Remedy = "Slots of the cluster are served by nobody: see CLUSTER INFO."
	case "LOADING":
		f.Remedy = "The server is loading its data: wait."
	case "BUSY":
		f.Remedy = "A script of somebody else hangs: SCRIPT KILL, or wait for its end."
	}
	return f
}
