package model

// operations are all but the guards, which need to know what they guard.
var operations = map[string]func(s *Store, keys, args []string) (any, error){
	"acquire":       (*Store).Acquire,
	"release":       (*Store).Release,
	"let_go":        (*Store).LetGo,
	"renew":         (*Store).Renew,
	"resume":        (*Store).Resume,
	"inspect":       (*Store).Inspect,
	"break":         (*Store).Break,
	"read_acquire":  (*Store).ReadAcquire,
	"downgrade":     (*Store).Downgrade,
	"multi_acquire": (*Store).MultiAcquire,
	"sem_acquire":   (*Store).SemAcquire,
	"sem_release":   (*Store).SemRelease,
	"sem_renew":     (*Store).SemRenew,
	"sem_limit":     (*Store).SemLimit,
	"roll":          (*Store).Roll,
	"mark":          (*Store).Mark,
	"fate":          (*Store).Fate,
	"announce":      (*Store).Announce,
	"roster":        (*Store).Roster,
	"whois":         (*Store).Whois,
	"note":          (*Store).Note,
	"events":        (*Store).Events,
	"stamp":         (*Store).Stamp,
	"vote":          (*Store).Vote,
	"confirm":       (*Store).Confirm,
	"line":          (*Store).Line,
	"leave":         (*Store).Leave,
}

// Run runs the operation of that name, which is the name of its script. known
// is false if there is none; nothing happened then.
func (s *Store) Run(name string, keys, args []string) (reply any, known bool, err error) {
	f, known := operations[name]
	if !known {
		return nil, false, nil
	}
	reply, err = f(s, keys, args)
	return reply, true, err
}
