package model

// Run runs the operation of that name, which is the name of its script. known
// is false if there is none; nothing happened then.
func (s *Store) Run(name string, keys, args []string) (reply any, known bool, err error) {
	known = true
	switch name {
	case "acquire":
		reply, err = s.Acquire(keys, args)
	case "release":
		reply, err = s.Release(keys, args)
	case "renew":
		reply, err = s.Renew(keys, args)
	case "resume":
		reply, err = s.Resume(keys, args)
	case "inspect":
		reply, err = s.Inspect(keys, args)
	case "break":
		reply, err = s.Break(keys, args)
	case "announce":
		reply, err = s.Announce(keys, args)
	case "roster":
		reply, err = s.Roster(keys, args)
	case "whois":
		reply, err = s.Whois(keys, args)
	case "note":
		reply, err = s.Note(keys, args)
	case "events":
		reply, err = s.Events(keys, args)
	default:
		known = false
	}
	return reply, known, err
}
