package traffic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the driver

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// register is the key of what a mutex guards. It shares the mutex's hash tag.
func register(name string) string { return "register:" + name }

// write writes to the registers of a mutex, and reads them.
func (h *held) write(ctx context.Context) {
	name := h.took.Name
	if h.raw != nil {
		h.register(ctx, history.Guarded, func(e history.Event) error { return h.Write(ctx, register(name), e.Value) },
			func() (value, fence int64, err error) { return readGuarded(ctx, h.raw, name) })
	}
	if h.outside != nil {
		h.register(ctx, history.Outside, func(e history.Event) error { return writeOutside(ctx, h.worker.outside, name, e.Fence, e.Value) },
			func() (value, fence int64, err error) { return readOutside(ctx, h.worker.outside, name) })
	}
}

// register reads one, writes a value that nobody else writes, and reads again.
func (h *held) register(ctx context.Context, kind history.Kind, write func(history.Event) error, from func() (value, fence int64, err error)) {
	e := h.event(history.Write)
	e.Kind, e.Fence, e.Value = kind, h.took.Fence, h.rand.Int64()
	h.read(kind, from)
	h.did(ctx, e, func() error { return write(e) })
	h.read(kind, from)
}

// read reads a register. What could not be read says nothing.
func (h *held) read(kind history.Kind, from func() (value, fence int64, err error)) {
	e := history.Event{Client: h.client, Op: history.Read, Kind: kind, Name: h.took.Name, Call: history.Now()}
	value, fence, err := from()
	e.Return = history.Now()
	if err == nil {
		e.Outcome, e.Value, e.Fence = history.OK, value, fence
		h.log.End(&e)
	}
}

func readGuarded(ctx context.Context, c redis.UniversalClient, name string) (value, fence int64, err error) {
	text, err := c.Get(ctx, register(name)).Result()
	if errors.Is(err, redis.Nil) {
		return 0, 0, nil
	}
	if err == nil {
		_, err = fmt.Sscan(text, &value, &fence)
	}
	return value, fence, err
}

// openOutside opens the register that is outside of the server, which all workers of a
// run share. It outlives each of them, and need not outlive the machine.
func openOutside(dir string) (*sql.DB, error) {
	name := "file:" + filepath.Join(dir, "outside.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout"
	first, err := sql.Open("sqlite", name+"(20000)")
	if err != nil {
		return nil, err
	}
	// Who changes the journal's mode is told at once that another does.
	for limit := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
		_, err = first.Exec("CREATE TABLE IF NOT EXISTS register (name TEXT PRIMARY KEY, value INTEGER, fence INTEGER)")
		if err == nil || time.Now().After(limit) {
			break
		}
	}
	if err := errors.Join(err, first.Close()); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", name+"(100)") // who has it may stand still
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

const accept = `INSERT INTO register (name, value, fence) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, fence = excluded.fence WHERE fence <= excluded.fence`

// writeOutside writes unless a larger fence has written, which is ErrLost.
func writeOutside(ctx context.Context, db *sql.DB, name string, fence, value int64) error {
	result, err := db.ExecContext(ctx, accept, name, value, fence)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, zamok.ErrLost)
	}
	return nil
}

func readOutside(ctx context.Context, db *sql.DB, name string) (value, fence int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT value, fence FROM register WHERE name = $1", name).Scan(&value, &fence)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, fence, err
}
