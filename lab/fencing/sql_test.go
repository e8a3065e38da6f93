package fencing

import (
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"
)

const schema = `
CREATE TABLE account (
  id      INTEGER PRIMARY KEY,
  balance INTEGER NOT NULL,
  fence   BIGINT  NOT NULL DEFAULT 0
);
`

const update = `
UPDATE account SET balance = $2, fence = $1
WHERE id = $3 AND fence <= $1;
`

var errStale = errors.New("a later holder of the lock has written")

// setBalance writes unless a holder with a larger fence has written before. The
// statement compares and writes in one step, so nothing can come between.
func setBalance(db *sql.DB, fence, balance int64, id int) error {
	result, err := db.Exec(update, fence, balance, id)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = errStale // or no such account
	}
	return err
}

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "test.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{schema, "INSERT INTO account (id, balance) VALUES (7, 100)"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func state(t *testing.T, db *sql.DB) (balance, fence int64) {
	t.Helper()
	if err := db.QueryRow("SELECT balance, fence FROM account WHERE id = 7").Scan(&balance, &fence); err != nil {
		t.Fatal(err)
	}
	return balance, fence
}

func TestSQLRefusesTheOldHolder(t *testing.T) {
	db := open(t)
	const first, second = 1_790_000_000_000_001, 1_790_000_000_000_009
	for _, step := range []struct {
		what    string
		fence   int64
		balance int64
		want    error
	}{
		{"the first holder writes", first, 90, nil},
		{"it writes again under the same lease", first, 80, nil},
		{"the second holder writes", second, 70, nil},
		{"the first, paused until now, writes", first, 0, errStale},
		{"the second goes on", second, 60, nil},
	} {
		if err := setBalance(db, step.fence, step.balance, 7); !errors.Is(err, step.want) {
			t.Errorf("%s: error %v, want %v", step.what, err, step.want)
		}
	}
	if balance, fence := state(t, db); balance != 60 || fence != second {
		t.Errorf("balance %d with fence %d at the end, want 60 with %d", balance, fence, second)
	}
}

// TestSQLUnderConcurrency: whatever order many writers come in, the last value is
// that of the largest fence, and no accepted write had a smaller fence than one
// accepted before it.
func TestSQLUnderConcurrency(t *testing.T) {
	db := open(t)
	const writers = 50
	var wg sync.WaitGroup
	for fence := int64(1); fence <= writers; fence++ {
		wg.Go(func() {
			if err := setBalance(db, fence, fence*10, 7); err != nil && !errors.Is(err, errStale) {
				t.Errorf("fence %d: %v", fence, err)
			}
		})
	}
	wg.Wait()
	if balance, fence := state(t, db); fence != writers || balance != writers*10 {
		t.Errorf("balance %d with fence %d at the end, want %d with %d", balance, fence, writers*10, writers)
	}
}
