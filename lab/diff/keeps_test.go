package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the scripts promise of a lock is said here a second time, of single steps: what
// a step finds may be damaged, but it must not make it worse. The model could keep
// the promises no better than the scripts do, if both were wrong in one way.

// scene is a lock at one moment.
type scene struct {
	value   string
	held    bool
	end     int64            // of the lock, in ms; -1: never
	readers map[string]int64 // who reads, and until when
	queue   []standing
	fence   int64 // -1: it is none, or about as large as can be
	mine    bool  // whoever acts has it, or a share that may have ended
}

// standing is an entry of the queue.
type standing struct {
	member, mode, token string
	ticket              float64
	lives               bool
}

func (s scene) reads() bool { return strings.HasPrefix(s.value, marker) }

func (o op) acquires() bool { return o.name == "acquire" || o.name == "read_acquire" }

// covered says whether the lock lasts as long as each of its readers.
func (s scene) covered() bool {
	for _, end := range s.readers {
		if s.end != -1 && s.end < end {
			return false
		}
	}
	return true
}

// first returns the place of the first who lives, of those who count.
func (s scene) first(counts func(standing) bool) int {
	return slices.IndexFunc(s.queue, func(e standing) bool { return e.lives && counts(e) })
}

// scene looks at the lock with these keys, for an operation on it.
func (w *world) scene(keys []string, o op) (s scene) {
	caller := o.args[0]
	w.model.Begin()
	s.value, s.held, _ = w.model.Get(keys[0])
	s.end, s.readers, s.fence = w.model.Deadline(keys[0]), map[string]int64{}, -1
	s.mine = strings.HasPrefix(s.value, caller+":")
	if s.reads() {
		all, _ := w.model.ZRange(keys[3])
		for _, m := range all {
			s.mine = s.mine || m.Member == caller
			if end := int64(m.Score); end > w.clock.us/1000 {
				s.readers[m.Member] = end
			}
		}
	}
	waiters, _ := w.model.ZRange(keys[1])
	for _, m := range waiters {
		e := standing{member: m.Member, ticket: m.Score}
		if p := strings.SplitN(m.Member, "|", 4); len(p) == 4 && onlyDigits(p[2]) {
			e.mode, e.token = p[0], p[1]
			e.lives = o.acquires() && p[1] == caller || p[3] == "-" || w.listeners(p[3]) > 0
		}
		s.queue = append(s.queue, e)
	}
	if v, ok, _ := w.model.Get(keys[2]); ok && onlyDigits(v) {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n < 1<<53-10_000 { // several in one step, and blocks
			s.fence = n
		}
	}
	return s
}

func onlyDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// step is an operation on a lock, and what it was before and after.
type step struct {
	op
	before, after scene
	closed        bool // it is quarantine, for who acts
}

// broken says which promise the step broke, "" if none.
func (s step) broken() string {
	for _, rule := range []func() string{s.covers, s.readersStay, s.noReaderPasses, s.firstIsServed, s.fencesGrow, s.nothingShortens, s.nobodyInQuarantine, s.memberDecidesNothing} {
		if what := rule(); what != "" {
			return what
		}
	}
	return ""
}

// changed says whether the lock has another holder, or is the readers' now.
func (s step) changed() bool {
	return s.after.held && s.after.value != s.before.value && s.name != "resume" && !s.rests() && !s.asks()
}

func (s step) rests() bool { return strings.HasPrefix(s.after.value, "z1-rest") }

func (s step) asks() bool { return s.name == "break" && s.args[1] == "ask" }

func (s step) covers() string {
	if s.after.covered() || s.before.reads() && !s.before.covered() {
		return ""
	}
	return "the lock ends before a reader's lease"
}

// readersStay: only the last reader's release takes the lock from readers, and no
// reader is lost but by its own.
func (s step) readersStay() string {
	for r, end := range s.before.readers {
		mine := s.name == "release" && r == s.args[0]
		switch now, is := s.after.readers[r]; {
		case !is && !mine:
			return r + " reads no more"
		case is && now < end && !mine: // it may stand in the queue a second time
			return "the lease of " + r + " became shorter"
		}
	}
	if s.before.reads() && !s.after.reads() && s.name != "release" {
		return "the lock was taken from readers"
	}
	return ""
}

// place returns where the token stands, as a reader unless it acts itself, or would
// come to stand.
func (s step) place(token string) int {
	acts := s.acquires() && s.args[0] == token
	at := slices.IndexFunc(s.before.queue, func(e standing) bool { return e.token == token && e.lives && (acts || e.mode == "r") })
	if !acts {
		return at
	}
	come := len(s.before.queue)
	if come > 0 && s.before.queue[come-1].ticket >= 1<<53 { // no number is larger by one
		return 0
	}
	if ticket, _ := strconv.ParseFloat(s.args[3], 64); ticket != 0 && s.args[2] != "" {
		come = slices.IndexFunc(append(slices.Clone(s.before.queue), standing{ticket: ticket}), func(e standing) bool { return e.ticket >= ticket })
	}
	if at >= 0 {
		return min(at, come)
	}
	return come
}

// counts says whether others have to wait for who stands there: not who acts or gives
// up with this very step.
func (s step) counts(e standing) bool {
	return !(s.acquires() && e.token == s.args[0]) && (s.name != "release" || s.before.mine || e.member != s.args[1])
}

func (s step) noReaderPasses() string {
	writer := s.before.first(func(e standing) bool { return e.mode != "r" && s.counts(e) })
	for r := range s.after.readers {
		if _, had := s.before.readers[r]; had || s.name == "downgrade" && r == s.args[0] {
			continue
		}
		switch at := s.place(r); {
		case at < 0:
			return r + " reads, and did not wait"
		case writer >= 0 && writer < at:
			return r + " passed the writer " + s.before.queue[writer].token
		}
	}
	return ""
}

// firstIsServed: a lock that has another writer now has the first who was there.
func (s step) firstIsServed() string {
	if !s.changed() || s.after.reads() || s.name == "vote" || s.name == "confirm" {
		return ""
	}
	first := s.before.first(s.counts)
	if s.name == "acquire" && strings.HasPrefix(s.after.value, s.args[0]+":") {
		if first >= 0 && first < s.place(s.args[0]) {
			return "it passed " + s.before.queue[first].token
		}
		return ""
	}
	if first < 0 || !strings.HasPrefix(s.after.value, s.before.queue[first].token+":") {
		return "the lock did not go to the first"
	}
	return ""
}

func (s step) fencesGrow() string {
	if s.before.fence < 0 {
		return ""
	}
	if s.after.fence >= 0 && s.after.fence < s.before.fence {
		return "the last fence became smaller"
	}
	if !s.changed() || s.name == "downgrade" || s.name == "confirm" { // which is told what the fence is
		return ""
	}
	_, text, _ := strings.Cut(s.after.value[strings.LastIndex(s.after.value, ":"):], ":")
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n <= s.before.fence || n > s.after.fence && s.after.fence >= 0 {
		return fmt.Sprintf("the fence %s follows %d", text, s.before.fence)
	}
	return ""
}

// nothingShortens: what one holder has does not become less, unless it had no end.
func (s step) nothingShortens() string {
	same := s.before.held && s.after.held && s.before.value == s.after.value && !s.before.reads()
	if same && s.before.end != -1 && s.after.end < s.before.end {
		return "the lease became shorter"
	}
	return ""
}

// memberDecidesNothing: a member of a quorum takes a lock from nobody but who gives it
// up, and gives a free one to nobody but who asks for a vote.
func (s step) memberDecidesNothing() string {
	switch s.name {
	case "vote", "confirm", "line", "leave":
	default:
		return ""
	}
	had, _, _ := strings.Cut(s.before.value, ":")
	has, _, _ := strings.Cut(s.after.value, ":")
	switch {
	case s.before.held && s.after.held && had != has, s.before.held && !s.after.held && (s.name != "leave" || !s.before.mine):
		return "the lock was taken from " + had
	case !s.before.held && s.after.held && (s.name != "vote" || has != s.args[0]):
		return "the lock was given to " + has
	case s.name == "confirm" && s.before.end != s.after.end:
		return "a confirmation changed the end"
	}
	return ""
}

// endless returns the keys that must have an end and have none.
func (w *world) endless() (keys []string) {
	w.model.Begin()
	for _, key := range dumpKeys {
		if key != "fence" && key != nodeKey && !strings.HasPrefix(key, "limit") && !slices.Contains(userKeys, key) && w.model.Deadline(key) == -1 {
			keys = append(keys, key)
		}
	}
	return keys
}

// watched does the operation on both sides, as both does, and then asks also whether
// a promise was broken.
func (w *world) watched(o op) (difference string, err error) {
	if !o.isScript() {
		return w.both(o)
	}
	if err := w.clock.set(w.clock.us + o.step); err != nil {
		return "", err
	}
	o.step = 0
	parts := partsOf(o)
	for i := range parts {
		parts[i].before = w.scene(parts[i].keys, parts[i].op)
	}
	endless := w.endless()
	if difference, err = w.both(o); err != nil || difference != "" {
		return difference, err
	}
	for _, key := range w.endless() {
		if !slices.Contains(endless, key) {
			return "both leave " + key + " without an end", nil
		}
	}
	for i := range parts {
		s := &parts[i]
		s.after, s.closed = w.scene(s.keys, s.op), w.closed(o)
		if what := s.broken(); what != "" {
			return fmt.Sprintf("both: %s\nbefore %+v\nafter  %+v", what, s.before, s.after), nil
		}
	}
	if o.name == "multi_acquire" && o.args[0] == "1" && half(parts) {
		return "both: some of several locks were taken, and not all", nil
	}
	return "", nil
}

// partsOf returns what the operation is to each lock that it is about: one on several
// locks asks for each of them as one who does not wait.
func partsOf(o op) (parts []step) {
	for _, keys := range lockKeys {
		i := slices.Index(o.keys, keys[0])
		switch {
		case i >= 0 && o.name == "multi_acquire":
			parts = append(parts, step{op: op{name: "acquire", keys: keys, args: []string{o.args[2+i/3], o.args[1], "", "0", "w"}}})
		case i == 0:
			parts = append(parts, step{op: op{name: o.name, keys: keys, args: o.args}})
		}
	}
	return parts
}

// half says whether some locks have changed hands and not all are the callers'.
func half(parts []step) bool {
	changed := slices.ContainsFunc(parts, step.changed)
	return changed && slices.ContainsFunc(parts, func(s step) bool { return !strings.HasPrefix(s.after.value, s.args[0]+":") })
}

// TestPromisesHaveTeeth: each is seen to be broken.
func TestPromisesHaveTeeth(t *testing.T) {
	writer := standing{"w|W|5|-", "w", "W", 1, true}
	reader := standing{"r|R|5|-", "r", "R", 2, true}
	read := func(end int64, fence int64, readers map[string]int64, queue ...standing) scene {
		return scene{value: marker + "7", held: true, end: end, readers: readers, queue: queue, fence: fence}
	}
	writes := func(value string, end, fence int64, queue ...standing) scene {
		return scene{value: value, held: true, end: end, queue: queue, fence: fence}
	}
	free := scene{end: -2, fence: 6, queue: []standing{writer, reader}}
	one, two := map[string]int64{"A": 50}, map[string]int64{"A": 50, "R": 60}
	for _, s := range []struct {
		want string
		step
	}{
		{"ends before", step{op{name: "renew", args: []string{"A"}}, read(50, 7, one), read(40, 7, one), false}},
		{"reads no more", step{op{name: "release", args: []string{"A", ""}}, read(60, 7, two), read(60, 7, nil), false}},
		{"became shorter", step{op{name: "renew", args: []string{"A"}}, read(60, 7, two), read(60, 7, map[string]int64{"A": 40, "R": 60}), false}},
		{"taken from readers", step{op{name: "acquire", args: []string{"W", "5", "-", "0", "w"}}, read(60, 7, nil), writes("W:8", 60, 8), false}},
		{"passed the writer", step{op{name: "read_acquire", args: []string{"A", "5", "", "0", "r"}}, free, read(60, 7, two, writer), false}},
		{"passed the writer", step{op{name: "read_acquire", args: []string{"A", "5", "-", "0", "r"}}, free, read(60, 7, one, writer), false}},
		{"did not wait", step{op{name: "renew", args: []string{"A"}}, read(60, 7, nil), read(60, 7, two), false}},
		{"it passed", step{op{name: "acquire", args: []string{"B", "5", "", "0", "w"}}, free, writes("B:7", 60, 7), false}},
		{"to the first", step{op{name: "release", args: []string{"B", ""}}, free, writes("R:7", 60, 7), false}},
		{"became smaller", step{op{name: "renew", args: []string{"A"}}, scene{fence: 6}, scene{fence: 5}, false}},
		{"follows 6", step{op{name: "release", args: []string{"B", ""}}, free, writes("W:6", 60, 7), false}},
		{"lease became shorter", step{op{name: "renew", args: []string{"A"}}, writes("A:6", 60, 6), writes("A:6", 59, 6), false}},
		{"granted it in", step{op{name: "release", args: []string{"B", ""}}, free, writes("W:7", 60, 7, reader), true}},
		{"in quarantine", step{op{name: "release", args: []string{"W", "w|W|5|-"}}, read(60, 6, one, writer, reader), read(60, 7, two), true}},
		{"taken from A", step{op{name: "vote", args: []string{"B", "5"}}, writes("A:6", 60, 6), writes("B:7", 60, 7), false}},
		{"taken from A", step{op{name: "leave", args: []string{"B", ""}}, writes("A:6", 60, 6), scene{end: -2, fence: 6}, false}},
		{"given to W", step{op{name: "leave", args: []string{"B", ""}}, free, writes("W:7", 60, 7, reader), false}},
		{"changed the end", step{op{name: "confirm", args: []string{"A", "7"}}, writes("A:6", 60, 6), writes("A:7", 70, 7), false}},
		{"", step{op{name: "release", args: []string{"B", ""}}, free, writes("W:7", 60, 7, reader), false}},
		{"", step{op{name: "release", args: []string{"W", "w|W|5|-"}}, read(60, 6, one, writer, reader), read(60, 7, two), false}},
	} {
		if got := s.broken(); (s.want == "") != (got == "") || !strings.Contains(got, s.want) {
			t.Errorf("%s %v: %q, want %q", s.name, s.args, got, s.want)
		}
	}
	got := step{op{args: []string{"A"}}, free, writes("A:7", 60, 7), false}
	if refused := (step{op{args: []string{"B"}}, free, free, false}); !half([]step{got, refused}) || half([]step{refused, refused}) || half([]step{got, got}) {
		t.Error("half of several locks is not seen, or what is none is")
	}
}
