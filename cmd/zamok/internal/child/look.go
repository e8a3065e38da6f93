package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var (
	errNotFound   = errors.New("command not found")
	errDirectory  = errors.New("is a directory")
	errNotAllowed = errors.New("permission denied: it is not executable")
	errFormat     = errors.New("cannot be executed: not a program for this machine, and no #! line at its start")
	errInterp     = errors.New("cannot be executed: the interpreter named in its #! line does not exist")
)

// Look finds name as execvp does, by the PATH of env (of this process if env is
// nil). Its error is a *StartError. Call it before waiting for a lock: a typing
// mistake should not stand in a queue.
func Look(name string, env []string) (string, error) {
	if name == "" {
		return "", &StartError{Name: `""`, Code: 127, Err: errNotFound}
	}
	if strings.ContainsRune(name, filepath.Separator) {
		if err := executable(name); err != nil {
			return "", startError(name, name, err)
		}
		return name, nil
	}
	if env == nil {
		env = os.Environ()
	}
	found := errNotFound
	for _, dir := range filepath.SplitList(searchPath(env)) {
		path := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			path = "." + string(filepath.Separator) + name
		}
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if code(path, err) == 126 {
			found = err // a later directory may have one that can be executed
		}
	}
	return "", startError(name, name, found)
}

// searchPath is PATH, or where the C library looks when there is none.
func searchPath(env []string) string {
	for _, kv := range env {
		if strings.HasPrefix(kv, "PATH=") {
			return lookupEnv(env, "PATH")
		}
	}
	return "/bin:/usr/bin"
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errDirectory
	case info.Mode()&0o111 == 0:
		return errNotAllowed
	}
	return nil
}

// startError words err, which path gave, for name. execve says ENOENT also when
// the interpreter of a script is missing.
func startError(name, path string, err error) *StartError {
	e := &StartError{Name: name, Code: code(path, err), Err: err}
	var p *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		e.Err = errFormat
	case errors.Is(err, fs.ErrNotExist) && e.Code == 126:
		e.Err = errInterp
	case errors.As(err, &p):
		e.Err = p.Err
	}
	return e
}

func code(path string, err error) int {
	if errors.Is(err, errNotFound) || errors.Is(err, syscall.ENOTDIR) {
		return 127
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path); err != nil {
			return 127
		}
	}
	return 126
}

func lookupEnv(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v // the last one counts, as in os/exec
		}
	}
	return value
}
