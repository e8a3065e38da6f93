package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// role: locks live on a primary. The scripts make a replica refuse them, so this
// is a lock that does not work, and not one that is unsafe.
func role(f facts) []Finding {
	switch {
	case f.sentinel():
		return []Finding{{
			Check: "role", Severity: Critical, Found: "this is a Sentinel", Reason: "It keeps no keys, and so no locks.",
			Remedy: "Give the address of the primary, or a URL redis+sentinel://HOST:PORT/MASTER.",
		}}
	case f.info["role"] == "slave":
		found := "this is a replica of " + f.info["master_host"] + ":" + f.info["master_port"]
		if f.info["master_link_status"] != "up" {
			found += ", and its link to it is down"
		}
		return []Finding{{
			Check: "role", Severity: Critical, Found: found, Reason: "A replica refuses locks.",
			Remedy: "Give the address of the primary, or a Sentinel URL.",
		}}
	case f.info["role"] == "":
		return nil
	}
	return []Finding{{Check: "role", Severity: OK, Found: "primary"}}
}

// release is a version of a server.
type release [3]int

func parseRelease(text string) release {
	var r release
	for i, part := range strings.SplitN(text, ".", 3) {
		digits := part
		if end := strings.IndexFunc(part, func(c rune) bool { return c < '0' || c > '9' }); end >= 0 {
			digits = part[:end]
		}
		r[i], _ = strconv.Atoi(digits)
	}
	return r
}

func (r release) before(other release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}

// version: the scripts need GETEX, which came with Redis 6.2, and Valkey began with
// 7.2. Valkey also tells in redis_version which Redis it is like (7.2.4), unless it
// is told not to. Whether a release is still maintained is not said: that would be
// out of date before this program is.
func version(f facts) []Finding {
	name, number, least := "Redis", f.info["redis_version"], release{6, 2}
	if v := f.info["valkey_version"]; v != "" {
		name, number, least = "Valkey", v, release{7, 2}
	}
	switch {
	case number == "":
		return nil
	case parseRelease(number).before(least):
		return []Finding{{
			Check: "version", Severity: Critical, Found: name + " " + number, Reason: "The scripts of zamok use commands that came with Redis 6.2: locks do not work.",
			Remedy: "Redis 6.2.7 or later, or Valkey 7.2 or later.",
		}}
	}
	return []Finding{{Check: "version", Severity: OK, Found: name + " " + number}}
}

// cluster: what is said here is said of one node. Whether the client finds the
// others shows when scripts are tried: one that does not is answered MOVED.
func cluster(f facts) []Finding {
	if f.num("cluster_enabled") == 0 {
		return nil
	}
	return []Finding{{
		Check: "cluster", Severity: Note, Found: "the server is a node of a cluster",
		Reason: "What is said here holds for this node, and others may be set otherwise. On the smaller side of a partition a primary goes on granting for cluster-node-timeout.",
		Remedy: "Give the doctor the cluster (redis+cluster://): it looks at every primary.",
	}}
}

// scriptsObey is the release since which a script's writes are refused when there
// are too few replicas; before, only plain commands were (redis/redis#9993, mended
// by #10160 in 7.0 and by #10249 in 6.2.7).
var scriptsObey = release{6, 2, 7}

// longLag is the longest min-replicas-max-lag that passes, in seconds: the
// default. A failover begins after that where nobody has changed
// down-after-milliseconds (30 s) or cluster-node-timeout (15 s).
const longLag = 10

// quorum is how many replicas a primary must have to write.
type quorum struct {
	need    int64 // 0: none
	lag     int64 // s after which a silent one does not count
	guessed bool  // there is one, and no more can be seen
}

// quorumOf reads the settings. Where they may not be read, INFO has a line that is
// there only while there is a quorum.
func quorumOf(f facts) quorum {
	need, known := f.setting("min-replicas-to-write")
	lag, _ := f.setting("min-replicas-max-lag")
	_, on := f.info["min_slaves_good_slaves"]
	switch {
	case !known && on:
		return quorum{need: 1, guessed: true}
	case lag == 0: // either 0 turns it off
		return quorum{}
	}
	return quorum{need: need, lag: lag}
}

func (q quorum) String() string {
	switch {
	case q.guessed:
		return "min-replicas-to-write is set"
	case q.need == 0:
		return "min-replicas-to-write 0"
	}
	return fmt.Sprintf("min-replicas-to-write %d, min-replicas-max-lag %d", q.need, q.lag)
}

// replicas: replication is asynchronous, so a failover can take back a lock. A
// primary that is cut off goes on granting locks while its replica is promoted,
// unless it must have replicas to write.
func replicas(f facts) []Finding {
	if f.info["role"] != "master" {
		return nil
	}
	n, q := f.num("connected_slaves"), quorumOf(f)
	out := append(states(f, n), judgeQuorum(f, n, q))
	if n > 0 && f.settings["replica-read-only"] == "no" {
		out = append(out, Finding{
			Check: "replicas", Severity: Warning, Found: "replica-read-only no",
			Reason: "Once this server is a replica itself, it takes writes all the same: a client that has its old address is granted locks there, which nobody else sees.",
			Remedy: "replica-read-only yes, on every node.",
		})
	}
	return out
}

// judgeQuorum: the order of the cases is that of what makes the rest pointless.
func judgeQuorum(f facts, n int64, q quorum) Finding {
	out := Finding{Check: "replicas", Severity: OK, Found: fmt.Sprintf("%d connected; %v", n, q)}
	good := n
	if _, told := f.info["min_slaves_good_slaves"]; told {
		good = f.num("min_slaves_good_slaves")
	}
	switch {
	case q.need > 0 && parseRelease(f.info["redis_version"]).before(scriptsObey):
		out.Severity = Warning
		out.Found += ", on Redis " + f.info["redis_version"]
		out.Reason = "Releases before 6.2.7 let scripts write without replicas: a primary that is cut off goes on granting locks while another is promoted."
		out.Remedy = "Redis 6.2.7 or later."
	case q.need > good && !q.guessed:
		out.Severity = Critical
		out.Found = fmt.Sprintf("%d connected, %d in time; %v", n, good, q)
		out.Reason = "The server refuses all writes: no lock can be taken, renewed or released."
		out.Remedy = "Bring back the replicas, or lower min-replicas-to-write."
	case n == 0:
		out.Severity, out.Found = Note, "none"
		out.Reason = "While this server is down no lock can be taken, and leases end. That is safe; it is not available."
		out.Remedy = "Where locks must go on without it: replicas, Sentinel, and min-replicas-to-write 1."
	case q.need == 0:
		out.Severity = Warning
		out.Reason = "A primary that is cut off goes on granting locks while a replica is promoted: two hold the same lock, and fences do not order them."
		out.Remedy = "min-replicas-to-write 1 and a small min-replicas-max-lag, on every node."
	case q.lag > longLag:
		out.Severity = Warning
		out.Reason = fmt.Sprintf("A primary that is cut off goes on granting locks for %d s, in which a replica can be promoted.", q.lag)
		out.Remedy = "min-replicas-max-lag below the time after which a failover begins (down-after-milliseconds of Sentinel), on every node."
	}
	return out
}

// states tells of replicas that would be bad successors. A replica reports every
// second, so one that has been silent for long is cut off or stands still.
func states(f facts, n int64) []Finding {
	var behind []string
	for i := range n {
		r := parts(f.info["slave"+strconv.FormatInt(i, 10)])
		lag, _ := strconv.Atoi(r["lag"])
		switch {
		case len(r) == 0:
		case r["state"] != "online":
			behind = append(behind, fmt.Sprintf("%s:%s is not online (%s)", r["ip"], r["port"], r["state"]))
		case lag > longLag:
			behind = append(behind, fmt.Sprintf("%s:%s was last heard %d s ago", r["ip"], r["port"], lag))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	return []Finding{{
		Check: "replicas", Severity: Warning, Found: strings.Join(behind, "; "),
		Reason: "If it is promoted now, the locks that it lacks are free while their holders work, until their next renewal.",
		Remedy: "See the replica's log and the network between the two.",
	}}
}
