// Package oncetest lets programs that use package once be tested on the in-memory
// server, which runs no Lua.
package oncetest

import (
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver/memory"
)

// Define tells the server what the script of package once does. Of a
// zamoktest.Server give its Server.
func Define(s *memory.Server) { s.Define("zamok.once", swap) }

// swap is the script in Go: the record, keys[0], becomes args[1], empty for none,
// if it is args[0], empty for none; it lives for args[2] ms.
func swap(tx *memory.Tx, keys, args []string, _ int64) (any, error) {
	was, _, err := tx.Get(keys[0])
	if err != nil || was != args[0] {
		return was, err
	}
	if args[1] == "" {
		tx.Del(keys[0])
		return was, nil
	}
	ms, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return nil, err
	}
	return was, tx.Set(keys[0], args[1], time.Duration(ms)*time.Millisecond)
}
