package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// Node is what is said of the server, for a quarantine (zamok.Config.Quarantine).
type Node struct {
	// Quarantine is the longest lease of the deployment, for which nobody is granted
	// anything after a loss of data; 0: no client with a quarantine was here yet.
	Quarantine time.Duration

	// Members are the names of the servers of a quorum, sorted; nil of one server.
	Members []string

	// Left is how long it still lasts, 0: it is over. Moved: it has not begun, since
	// the server was restarted or failed over and no client with a quarantine has
	// been here since; the first that comes begins it.
	Left  time.Duration
	Until time.Time // when it ends or ended, by the server's clock
	Moved bool

	RunID string // of the server process; empty while Quarantine is 0
	value string
}

// ErrUsed says that the server is not new. From Stamp; nothing was changed.
var ErrUsed = errors.New("inspect: the server is not empty, so it may have lost a lease")

// Node looks at what is said of the server. It needs the right to run INFO once a
// client with a quarantine was here. The error wraps the driver's.
func (i *Inspector) Node(ctx context.Context) (Node, error) { return i.stamp(ctx, "") }

// Stamp says of a server that is new, and so has lost nothing, that it may serve at
// once: a first quarantine of that length is then spared. members are the names of the
// servers of a quorum, nil for one server. Only who knows that no client has ever held
// anything there may say so, since a server that has just lost everything is empty too. Stamping a server again changes nothing and is no error.
//
// The error is ErrUsed when the database has a key, a *zamok.ConfigError (nothing was
// sent), or wraps the driver's. It needs the rights to run INFO and RANDOMKEY.
func (i *Inspector) Stamp(ctx context.Context, longest time.Duration, members []string) (Node, error) {
	if longest < time.Second || longest > 24*time.Hour || longest%time.Millisecond != 0 {
		return Node{}, &zamok.ConfigError{Field: "longest", Err: fmt.Errorf("%v; it must be 1s to 24h, in whole milliseconds", longest)}
	}
	list := "-"
	if len(members) > 0 {
		members = slices.Sorted(slices.Values(members))
		list = strings.Join(members, ",")
	}
	return i.stamp(ctx, strconv.FormatInt(longest.Milliseconds(), 10)+" "+list)
}

func (i *Inspector) stamp(ctx context.Context, terms string) (Node, error) {
	reply, err := i.d.Eval(ctx, driver.Call{Script: lua.Stamp, Keys: []string{keys.Node(i.prefix)}, Args: []string{terms}, Limit: limit})
	if err != nil {
		return Node{}, fmt.Errorf("inspect: the server's node: %w", because(ctx, err))
	}
	r := fields{list: asList(reply)}
	status := r.text()
	r.text() // it has no fence
	left := millis(r.num())
	for range 3 { // the time, and what a stamp has not
		r.num()
	}
	n := Node{value: r.text(), RunID: r.text()}
	if r.bad {
		return Node{}, fmt.Errorf("inspect: the server's reply is not one of the script's: %.200q", reply)
	}
	n.parse(left)
	if status == "used" {
		return n, ErrUsed
	}
	return n, nil
}

// parse reads what stands in the key: RUN_ID UNTIL_MS MAXTTL_MS MEMBERS.
func (n *Node) parse(left time.Duration) {
	part := strings.SplitN(n.value, " ", 4)
	if len(part) != 4 {
		return
	}
	until, err1 := strconv.ParseInt(part[1], 10, 64)
	longest, err2 := strconv.ParseInt(part[2], 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	n.Quarantine, n.Until = millis(longest), time.UnixMilli(until)
	n.Moved = part[0] != n.RunID || left > n.Quarantine
	if !n.Moved {
		n.Left = left
	}
	if part[3] != "-" {
		n.Members = strings.Split(part[3], ",")
	}
}

// deciding makes the call one that may grant somebody something: in a deployment with
// a quarantine it must know about that.
func (i *Inspector) deciding(ctx context.Context, call driver.Call) (driver.Call, error) {
	n, err := i.Node(ctx)
	if err != nil || n.Quarantine == 0 {
		return call, err
	}
	_, terms, _ := strings.Cut(n.value, " ")
	_, terms, _ = strings.Cut(terms, " ")
	call.Keys, call.Args = append(slices.Clone(call.Keys), keys.Node(i.prefix)), append(call.Args, terms)
	return call, nil
}
