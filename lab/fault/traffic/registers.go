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

// content is what a register has, and how often that was written, if it counts.
type content struct{ value, fence, times int64 }

// write writes to the registers of a lock, and reads them. Those who do not hold alone
// have one of their own, on the server.
func (h *held) write(ctx context.Context) {
	kind, alone := history.Guarded, h.took.Kind == history.Mutex || h.took.Kind == history.Writer
	if !alone {
		kind = history.Shared
	}
	if h.raw != nil {
		key := fmt.Sprintf("%s:%s", kind, h.took.Name) // it has the lock's hash tag
		h.register(ctx, kind, func(e history.Event) error { return h.Write(ctx, key, e.Value) },
			func() (content, error) { return readGuarded(ctx, h.raw, key) })
	}
	if h.outside != nil && alone {
		name := h.took.Name
		h.register(ctx, history.Outside, func(e history.Event) error { return writeOutside(ctx, h.worker.outside, name, e.Fence, e.Value) },
			func() (content, error) { return readOutside(ctx, h.worker.outside, name) })
	}
}

// register reads one, writes a value that nobody else writes, and reads again.
func (h *held) register(ctx context.Context, kind history.Kind, write func(history.Event) error, from func() (content, error)) {
	e := h.event(history.Write)
	e.Kind, e.Fence, e.Value = kind, h.took.Fence, h.rand.Int64()
	h.read(kind, from)
	h.did(ctx, e, func() error { return write(e) })
	h.read(kind, from)
}

// read reads a register. What could not be read says nothing.
func (h *held) read(kind history.Kind, from func() (content, error)) {
	e := history.Event{Client: h.client, Op: history.Read, Kind: kind, Name: h.took.Name, Call: history.Now()}
	c, err := from()
	e.Return = history.Now()
	if err == nil {
		e.Outcome, e.Value, e.Fence, e.Times = history.OK, c.value, c.fence, c.times
		h.log.End(&e)
	}
}

func readGuarded(ctx context.Context, from redis.UniversalClient, key string) (c content, err error) {
	text, err := from.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return c, nil
	}
	if err == nil {
		_, err = fmt.Sscan(text, &c.value, &c.fence, &c.times)
	}
	return c, err
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

func readOutside(ctx context.Context, db *sql.DB, name string) (c content, err error) {
	err = db.QueryRowContext(ctx, "SELECT value, fence FROM register WHERE name = $1", name).Scan(&c.value, &c.fence)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, err
}
