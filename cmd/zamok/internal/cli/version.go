package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, version())
			return a.written(err)
		},
	}
}

// build is the version of this binary.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func version() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " commit " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return fmt.Sprintf("zamok %s%s %s %s/%s", build(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages into a directory",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("write: zamok man /usr/local/share/man/man1", "one directory is expected, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			for _, c := range append(root.Commands(), root) {
				if c == root || c.Name() == "run" { // as in their --help
					c.Long += "\n\nExit codes:\n\n" + exitLines("    ")
				}
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "ZAMOK", Section: "1", Source: "zamok"}, args[0]); err != nil {
				return fmt.Errorf("cannot write the manual pages: %w", err)
			}
			return nil
		},
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("write: "+cmd.CommandPath(), "%s takes no arguments, but got %q", cmd.Name(), args)
	}
	return nil
}
