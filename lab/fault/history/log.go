package history

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// Log is the file of one process. It is safe for use by many goroutines.
type Log struct {
	proc string
	mu   sync.Mutex
	file *os.File
	next int64
	err  error
}

// ending is that of the files that Load reads.
const ending = ".history"

// NewLog makes the file of the process in a directory. No other may have its
// name: a process that was started again has a new one.
func NewLog(dir, proc string) (*Log, error) {
	file, err := os.OpenFile(filepath.Join(dir, proc+ending), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Log{proc: proc, file: file}, nil
}

// Begin writes that e is about to be asked for, stamps its Call, and gives it the
// ID by which End knows it.
func (l *Log) Begin(e *Event) {
	l.number(e)
	e.Call = Now()
	l.line(e)
}

// End writes what came of e. What did not Begin it numbers, and its Call is the
// caller's to set. Return is stamped unless the caller has.
func (l *Log) End(e *Event) {
	if e.Return == 0 {
		e.Return = Now()
	}
	if e.ID == 0 {
		l.number(e)
	}
	l.line(e)
}

// Fault writes a fault. It may be written twice, when it begins and when it has
// ended, with the same Kind, Target and From.
func (l *Log) Fault(f Fault) { l.line(&f) }

// Close closes the file. The error is the first that any write had.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

func (l *Log) number(e *Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	e.Proc, e.ID = l.proc, l.next
}

func (l *Log) line(v any) {
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.file.Write(b.Bytes())
	}
	if l.err == nil {
		l.err = err
	}
}
