package cli

import "github.com/spf13/cobra"

// oneServer says of each command that has no --quorum why.
var oneServer = map[string]string{
	"zamok once":   "that a run was done is written down by a script that must be sure of the lock, and no member knows whether a majority has it",
	"zamok lock":   byTokenOnQuorum,
	"zamok renew":  byTokenOnQuorum,
	"zamok unlock": byTokenOnQuorum,
	"zamok wait":   "its queue promises no order, so nobody is behind or ahead; `zamok show --quorum` tells who has the lock",
	"zamok slots":  "its members keep no permits",
	"zamok ls":     "a lock is what a majority says, and it would have to be asked about each; `zamok show --quorum` looks at one lock, at all members",
	"zamok events": "each member keeps its own list; look at one: zamok events --redis URL",
	"zamok check":  "a lock is what a majority says; `zamok doctor --quorum` looks at all members, and `zamok show --quorum` at one lock",
	"zamok init":   "its members are named with each other: zamok quorum init --redis URL1 --redis URL2 --redis URL3",
	"zamok demo":   "it plays on one server",
}

const byTokenOnQuorum = "what holds a lock by its token alone could not be ended where a member does not answer; have what needs the lock be the command of `zamok run --quorum`"

// parseQuorum refuses --quorum where it means nothing, so that no command ever asks
// one member and answers for all.
func parseQuorum(cmd *cobra.Command, _ []string) error {
	if why, refuses := oneServer[cmd.CommandPath()]; refuses && cmd.Flags().Changed("quorum") {
		return usage(why, "`%s` does not work on a quorum", cmd.CommandPath())
	}
	return nil
}

// hideQuorum takes --quorum out of the help of what refuses it.
func hideQuorum(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if _, refuses := oneServer[cmd.CommandPath()]; refuses {
			_ = cmd.Flags().MarkHidden("quorum")
		}
	}
}

// checkQuorum refuses the flags of run that a quorum cannot serve.
func (f *runFlags) checkQuorum(changed func(flag string) bool) error {
	if !f.server.quorum {
		return nil
	}
	for _, flag := range []struct{ name, why string }{
		{"shared", "its members keep no readers"},
		{"slots", "its members keep no permits"},
		{"with", "some members could grant one of the locks and not the other; have COMMAND be a zamok run --quorum of its own"},
		{"wait-replicas", "a majority of its members has what is granted, and a replica of one of them is no member"},
		{"hold-min", "a member that loses its data would forget it"},
		{"tick", "that a tick was taken is written down by a script that must be sure of the lock, and no member knows whether a majority has it"},
	} {
		if changed(flag.name) {
			return usage(flag.why, "--%s does not work on a quorum", flag.name)
		}
	}
	return nil
}
