package cli

import (
	"strings"
	"testing"
)

// What is no quorum, and what a quorum cannot do, is refused with its reason before
// anything is sent, and never done at one member.
func TestQuorumIsRefused(t *testing.T) {
	const a, b, c = " --redis redis://127.0.0.1:1", " --redis redis://127.0.0.1:2", " --redis redis://127.0.0.1:3"
	for _, test := range []struct{ args, want string }{
		{"run job -- true" + a + b, "2 servers are given without --quorum"},
		{"run --quorum job -- true" + a, "1; a quorum has 3, 5 or 7"},
		{"run --quorum job -- true" + a + b, "an even number"},
		{"run --quorum job -- true" + a + b + a, "is given twice"},
		{"run --quorum job -- true" + a + b + " --redis unix:///redis.sock", "unix:///redis.sock?db=0 cannot be a member"},
		{"run --quorum job -- true" + a + b + " --redis redis+sentinel://a/main", "behind a Sentinel stand a server and its copies"},
		{"run --quorum job -- true" + a + b + " --redis redis://127.0.0.1:3/1", "its database is 0"},
		{"run --quorum job -- true", "1; a quorum has 3, 5 or 7"},
		{"show --quorum semaphore:job" + a + b + c, "a quorum has no semaphores"},
		{"run --quorum -s job -- true" + a + b + c, "--shared does not work on a quorum"},
		{"run --quorum -N 2 job -- true" + a + b + c, "--slots does not work on a quorum"},
		{"run --quorum --with other job -- true" + a + b + c, "--with does not work"},
		{"run --quorum --hold-min 1s job -- true" + a + b + c, "--hold-min does not work"},
		{"run --quorum --wait-replicas 1 job -- true" + a + b + c, "--wait-replicas does not work"},
		{"run --quorum --tick job -- true" + a + b + c, "--tick does not work"},
		{"once --quorum --policy give-up key -- true", "zamok once` does not work on a quorum"},
		{"lock --quorum job", "zamok lock` does not work on a quorum"},
		{"renew --quorum job token", "zamok renew` does not work on a quorum"},
		{"unlock --quorum job token", "zamok unlock` does not work on a quorum"},
		{"wait --quorum job", "promises no order"},
		{"slots --quorum job", "keep no permits"},
		{"ls --quorum", "zamok show --quorum"},
		{"break --quorum --reason stuck --yes semaphore:job" + a + b + c, "a quorum has no semaphores"},
		{"break --quorum --reason stuck --yes --now job", "--now does not work on a quorum"},
		{"events --quorum", "keeps its own list"},
		{"check --quorum", "zamok doctor --quorum"},
		{"demo --quorum", "plays on one server"},
		{"init --quorum", "zamok quorum init"},
	} {
		// What stands behind -- is the command's: the flags come before it.
		args, command, is := strings.Cut(test.args, " -- true")
		words := strings.Fields(args + command)
		if is {
			words = append(words, "--", "true")
		}
		code, said := runApp(t, "redis://127.0.0.1:1", words...)
		if code != 64 || !strings.Contains(said, test.want) {
			t.Errorf("zamok %s: exit code %d, and said\n%s\nwant 64 and %q", strings.Join(words, " "), code, said, test.want)
		}
	}
}
