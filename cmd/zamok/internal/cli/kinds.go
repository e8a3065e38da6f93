package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

const mostSlots = 1_000_000

// addKinds adds what makes another thing of a lock.
func (c *claim) addKinds(flags *pflag.FlagSet) {
	flags.BoolVarP(&c.shared, "shared", "s", false, "take the lock as a reader: beside others who do, and not beside one\nwho takes it without -s")
	flags.IntVarP(&c.slots, "slots", "N", 0, "take a permit of the semaphore NAME, which has `N`: so many run at a\ntime; all who use NAME must say the same N, or see zamok slots")
}

// checkKinds is for what addKinds has added.
func (c *claim) checkKinds(changed func(flag string) bool) error {
	switch {
	case len(c.with) > 0 && (c.shared || changed("slots")):
		return usage("have COMMAND be a zamok run of its own", "--with is for locks that are taken alone, not for --shared, nor for --slots")
	case c.shared && changed("slots"):
		return usage("-s is for a lock, -N for a semaphore: leave out one", "--shared and --slots were both given")
	case changed("slots") && (c.slots < 1 || c.slots > mostSlots):
		return usage("it is how many may run at a time", "--slots is %d; it must be 1 to 1000000", c.slots)
	}
	return nil
}

// title is a name of ours as zamok show and zamok ls know it.
func (c *claim) title(name string) string {
	if c.slots > 0 {
		return semaphoreMark + name
	}
	return name
}

// thing is what err is about, in words.
func (c *claim) thing(err error) string {
	if c.slots > 0 {
		return fmt.Sprintf("the permit of %q", c.name)
	}
	return fmt.Sprintf("the lock %q", c.which(err))
}
