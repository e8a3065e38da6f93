package demo

import (
	"fmt"

	"github.com/zamok-go/zamok/driver/memory"
)

// Twins tells a server in memory, which has no Lua, what the demo's scripts do.
func Twins(s *memory.Server) {
	s.Define(writeScript, func(tx *memory.Tx, keys, args []string, fence int64) (any, error) {
		return "written", tx.Set(keys[0], fmt.Sprintf("%s %d", args[0], fence), 0)
	})
	s.Define(readScript, func(tx *memory.Tx, keys, _ []string, _ int64) (any, error) {
		v, _, err := tx.Get(keys[0])
		return v, err
	})
}
