package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/token"
)

// View is what the processes said of themselves at one moment. It is not changed
// afterwards, and may be used from many goroutines at once.
type View struct {
	// Time is the server's clock when it was asked.
	Time time.Time

	// Processes are all that have said who they are and whose text has not
	// expired, by host, pid and id. One that was killed stays among them, Silent,
	// for 90 s at least, and for as long as its leases can last.
	Processes []Process

	// Unnamed is how many leases and waits the processes have beyond those that
	// they name: one names at most 20,000 of each. Locks does not find these.
	Unnamed int

	in    *Inspector
	book  *book
	found []ref // by Scan
}

// Process is one client of zamok; a program may have several.
type Process struct {
	ID   string // of the client, HOST/PID/RANDOM
	Host string
	PID  int

	Service string // Config.Name
	Version string // Config.Version
	Command string // Config.Command

	Up   time.Duration // since the client was made; of one that is Silent or Left, until it last spoke
	Seen time.Duration // since it last spoke; 0 when not known

	// Silent: it should have spoken within the last 50 s and has not. It is gone,
	// or cut off from the server.
	Silent bool
	// Left: the client was closed. What it still names it had given away before.
	Left bool

	Holding int // leases, in all
	Waiting int // waits, in all
}

// Look asks who is there, and what they hold and wait for. It costs one request
// for the list of processes and one pipeline for each 256 of them, however many
// keys there are in the database. A process whose text is missing or cannot be
// read is left out.
//
// What it knows is what processes said, within a second or so: see the package's
// comment. A process that may not write, or was killed before it could, says
// nothing. Show asks for a lock itself.
//
// The error wraps the driver's, or says why ctx ended.
func (i *Inspector) Look(ctx context.Context) (*View, error) {
	now, all, err := i.roster(ctx)
	if err != nil {
		return nil, err
	}
	v := &View{Time: time.UnixMilli(now), in: i, book: newBook(nil)}
	for part := range slices.Chunk(all, batch) {
		if err := v.add(ctx, now, part); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(v.Processes, func(a, b Process) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), a.PID-b.PID, strings.Compare(a.ID, b.ID))
	})
	return v, nil
}

// listed is a client on the server's list.
type listed struct {
	id     string
	expiry int64 // of its text, in ms of the server's clock
}

// roster returns the list of clients, and the server's clock in ms.
func (i *Inspector) roster(ctx context.Context) (now int64, all []listed, err error) {
	reply, err := i.d.Eval(ctx, driver.Call{Script: lua.Roster, Keys: []string{keys.Procs(i.prefix)}, Limit: limit})
	if err != nil {
		return 0, nil, fmt.Errorf("inspect: asking who is there: %w", err)
	}
	r := fields{list: asList(reply)}
	now = r.num()
	all = make([]listed, 0, len(r.list)/2)
	for r.more() {
		all = append(all, listed{r.text(), r.num()})
	}
	if r.bad {
		return 0, nil, fmt.Errorf("inspect: asking who is there: the server's reply is not one of the script's: %.200q", reply)
	}
	return now, all, nil
}

// add reads the texts of some clients.
func (v *View) add(ctx context.Context, now int64, part []listed) error {
	ids := make([]string, len(part))
	for n, c := range part {
		ids[n] = c.id
	}
	results := v.in.d.EvalAll(ctx, v.in.whoisCalls(ids))
	for n, c := range part {
		if err := results[n].Err; err != nil && !wrongType(err) {
			// Who cannot be asked may hold everything: a view without would deceive.
			return fmt.Errorf("inspect: asking %s who it is: %w", c.id, because(ctx, err))
		}
		text, _ := results[n].Reply.(string)
		if r := v.book.read(c.id, text); r != nil {
			r.heard(millis(c.expiry - now))
			v.Processes = append(v.Processes, r.process())
			v.Unnamed += max(0, r.Holding-len(r.Held)) + max(0, r.Waiting-len(r.Waits))
		}
	}
	return nil
}

func (r *record) process() Process {
	p := Process{
		ID: r.id, Host: r.Host, PID: r.PID, Service: r.Service, Version: r.Version, Command: r.Command,
		Up: r.up(), Seen: r.seen, Silent: r.silent, Left: r.Left, Holding: r.Holding, Waiting: r.Waiting,
	}
	if h, ok := token.Parse(r.start + "0"); ok && p.Host == "" {
		p.Host, p.PID = h.Host, h.PID
	}
	return p
}

// wrongType says whether a key is of another type: one that somebody else put
// there, and which stands in nobody's way.
func wrongType(err error) bool {
	var se *driver.ServerError
	return errors.As(err, &se) && strings.Contains(se.Text, "WRONGTYPE")
}

// because names the cause of a ctx that has ended.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	return err
}
