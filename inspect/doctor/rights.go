package doctor

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// need is a right that zamok needs, and how to see without any effect that it is
// there.
type need struct {
	rule string

	// try is a command that needs the right and changes nothing: keys and channel
	// are made for it and exist nowhere. Nil where the look is another one: see
	// tryScripts and tryPubSub; or where there is none, since a client library needs
	// it to be connected at all.
	try []string

	severity Severity // of its lack
	without  string   // what its lack means
}

// key returns what stands for the key that try uses. What uses none is tried beside
// the queue's.
func (n need) key() string {
	for _, key := range []string{lockKey, semaphoreKey} {
		if slices.Contains(n.try, key) {
			return key
		}
	}
	return queueKey
}

// What stands for the keys and the channel in need.try.
const (
	lockKey      = "<lock>"
	semaphoreKey = "<semaphore>"
	queueKey     = "<queue>"
	inbox        = "<inbox>"
	slotInbox    = "<inbox of the slot>"
)

const (
	nothingWorks  = "Locks do not work without it."
	theyPoll      = "Waiters do not hear of their turn: they ask twice a second, which costs time and requests."
	noSemaphores  = "Semaphores do not work without it."
	noShare       = "Semaphores and read locks do not work without it."
	noPermits     = "Semaphores and read locks do not work without it, and who holds a lock cannot be told by the name of its service."
	noMark        = "Operators cannot have one of several holders stop: of those who read, or have a permit."
	deadAreServed = "Waiters that are gone are not seen, and each of them is given the lock for 2 s in vain."
	noEvents      = "What happened to leases is not written down for operators."
)

// needs is the one list of the rights of zamok: what Rights returns, what the
// doctor tries, and in what order. SET comes before all else that writes: a full
// memory refuses only the first write of a script.
var needs = []need{
	{"+hello", nil, Critical, nothingWorks},
	{"+ping", nil, Critical, nothingWorks},
	{"+subscribe", nil, Warning, theyPoll},
	{"+unsubscribe", nil, Warning, theyPoll},
	{"+evalsha", nil, Critical, nothingWorks},
	{"+eval", nil, Critical, "Locks do not work after the server has forgotten its scripts: after a restart, a failover, SCRIPT FLUSH."},
	{"+script|load", nil, Critical, nothingWorks},
	{"+exists", []string{"EXISTS", lockKey}, Critical, nothingWorks},
	{"+get", []string{"GET", lockKey}, Critical, nothingWorks},
	{"+set", []string{"SET", lockKey, "", "XX", "PX", "1"}, Critical, nothingWorks},
	{"+getex", []string{"GETEX", lockKey}, Critical, nothingWorks},
	{"+del", []string{"DEL", lockKey}, Critical, nothingWorks},
	{"+time", []string{"TIME"}, Critical, nothingWorks},
	{"+pttl", []string{"PTTL", lockKey}, Critical, nothingWorks},
	{"+pexpire", []string{"PEXPIRE", lockKey, "1"}, Critical, nothingWorks},
	{"+pexpireat", []string{"PEXPIREAT", queueKey, "1"}, Warning, noShare},
	{"+zadd", []string{"ZADD", queueKey, "XX", "0", "m"}, Critical, nothingWorks},
	{"+zrange", []string{"ZRANGE", queueKey, "0", "0"}, Critical, nothingWorks},
	{"+zrank", []string{"ZRANK", queueKey, "m"}, Critical, nothingWorks},
	{"+zscore", []string{"ZSCORE", queueKey, "m"}, Critical, nothingWorks},
	{"+zrem", []string{"ZREM", queueKey, "m"}, Critical, nothingWorks},
	{"+zpopmin", []string{"ZPOPMIN", queueKey}, Critical, nothingWorks},
	{"+zcard", []string{"ZCARD", queueKey}, Critical, nothingWorks},
	{"+zcount", []string{"ZCOUNT", queueKey, "0", "0"}, Warning, noShare},
	{"+zremrangebyscore", []string{"ZREMRANGEBYSCORE", semaphoreKey, "0", "0"}, Warning, noPermits},
	{"+hget", []string{"HGET", queueKey, "m"}, Warning, noShare},
	{"+hset", []string{"HSET", queueKey, "m", "", "m"}, Warning, noMark},
	{"+xadd", []string{"XADD", queueKey, "NOMKSTREAM", "*", "e", ""}, Warning, noEvents},
	{"+xrange", []string{"XRANGE", queueKey, "-", "+", "COUNT", "1"}, Warning, noEvents},
	{"+xrevrange", []string{"XREVRANGE", queueKey, "+", "-", "COUNT", "1"}, Warning, noEvents},
	{"+pubsub|numsub", []string{"PUBSUB", "NUMSUB", inbox}, Warning, deadAreServed},
	{"+publish", []string{"PUBLISH", inbox, ""}, Warning, theyPoll},
}

// needsInCluster are those that come to it in a cluster, of Redis 7.0 or later: a
// server before that refuses to give them.
var needsInCluster = []need{
	{"+ssubscribe", nil, Warning, theyPoll},
	{"+sunsubscribe", nil, Warning, theyPoll},
	{"+pubsub|shardnumsub", []string{"PUBSUB", "SHARDNUMSUB", slotInbox}, Warning, deadAreServed},
	{"+spublish", []string{"SPUBLISH", slotInbox, ""}, Warning, theyPoll},
}

// Rights returns what the user of zamok needs and no more: the rules of ACL
// SETUSER, one each, that take all rights away and then give these. The user's
// name, its password and "on" are not among them.
//
// A MutexConfig.Key needs its own pattern beside it, a guarded script the
// commands and keys that it uses, a database other than 0 needs +select, and
// Config.Quarantine needs +info.
func Rights(prefix string) []string {
	p := patterns(prefix)
	rules := []string{"resetkeys", "resetchannels", "-@all", p.lock, p.semaphore, p.helpers, p.channel}
	rules = slices.Compact(rules)
	for _, n := range needs {
		rules = append(rules, n.rule)
	}
	return rules
}

// RightsInCluster returns the rules that the user of zamok needs beside Rights in a
// cluster. A server before Redis 7.0 does not know them.
func RightsInCluster() []string {
	var rules []string
	for _, n := range needsInCluster {
		rules = append(rules, n.rule)
	}
	return rules
}

// RightsToLook returns the rules that operators' tools need beside Rights:
// inspect.Inspector.Scan walks over the keys, and the doctor does, and reads INFO
// and CONFIG.
// Nothing can be changed by them.
func RightsToLook() []string { return []string{"+scan", "+info", "+config|get"} }

// patternSet is the rules of the keys of locks, of those of semaphores, of the keys
// that help them, and of channels.
type patternSet struct{ lock, semaphore, helpers, channel string }

// patterns returns the rules for a prefix. With one of its own an application has
// one for all keys.
func patterns(prefix string) patternSet {
	if prefix == "" {
		return patternSet{"~lock:*", "~semaphore:*", "~zamok:*", "&zamok:*"}
	}
	p := pattern(prefix)
	return patternSet{"~" + p + "*", "~" + p + "*", "~" + p + "*", "&" + p + "*"}
}

// pattern makes of a prefix a pattern that matches it, for a rule of an ACL: one
// that ACL SETUSER and the prompt of redis-cli take as one word. What would part
// it, or quote, becomes "?", which matches any one character.
func pattern(prefix string) string {
	var b strings.Builder
	for i := 0; i < len(prefix); {
		r, n := utf8.DecodeRuneInString(prefix[i:])
		switch {
		case r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' || r == '\'':
			b.WriteString(strings.Repeat("?", n)) // the server matches bytes
		case strings.ContainsRune(`*?[]\^`, r):
			b.WriteByte('\\')
			b.WriteString(prefix[i : i+n])
		default:
			b.WriteString(prefix[i : i+n])
		}
		i += n
	}
	return b.String()
}
