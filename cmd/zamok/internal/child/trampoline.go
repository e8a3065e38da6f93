//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// start is a command that was forked and waits for its go: its pid and group
// exist, its first instruction has not run.
type start struct {
	pid     int
	goPipe  *os.File // a byte: go. End of file: zamok is dead, do not
	errPipe *os.File
}

// forkWaiting starts the trampoline in a new process group.
func forkWaiting(o Options, path string, env []string) (*start, error) {
	exe, err := self()
	if err != nil {
		return nil, err
	}
	goR, goW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer goR.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		goW.Close()
		return nil, err
	}
	defer errW.Close()

	// The command keeps what zamok inherited beyond 2 (make's jobserver, 3<file)
	// under the same numbers; the two pipes come behind.
	files := []uintptr{o.Stdin.Fd(), o.Stdout.Fd(), o.Stderr.Fd()}
	for _, fd := range inheritedFDs() {
		for len(files) < fd {
			files = append(files, ^uintptr(0)) // closed
		}
		if len(files) == fd {
			files = append(files, uintptr(fd))
		}
	}
	goFD := len(files)
	files = append(files, goR.Fd(), errW.Fd())

	argv := append([]string{"zamok", argTrampoline, strconv.Itoa(goFD), signalList(o.Ignored), path}, o.Argv...)
	pid, err := syscall.ForkExec(exe, argv, &syscall.ProcAttr{
		Env:   env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		goW.Close()
		errR.Close()
		return nil, err
	}
	return &start{pid: pid, goPipe: goW, errPipe: errR}, nil
}

// release lets the command begin. The channel gives nil when it has begun, else
// why not, and never blocks for longer than the trampoline lives.
func (s *start) release() <-chan error {
	_, _ = s.goPipe.Write([]byte{1}) // fails if it was killed: see below
	s.goPipe.Close()
	result := make(chan error, 1)
	go func() {
		defer s.errPipe.Close()
		var text [16]byte
		n, _ := s.errPipe.Read(text[:])
		if errno, err := strconv.Atoi(string(text[:n])); err == nil {
			result <- syscall.Errno(errno)
			return
		}
		// Closed by execve; or the trampoline was killed, and then the way it ended
		// says so, as it would for the command.
		result <- nil
	}()
	return result
}

// abandon makes the trampoline exit without starting the command.
func (s *start) abandon() {
	s.goPipe.Close()
	s.errPipe.Close()
}

// trampoline is the main function of the process that becomes the command:
// args are the number of the go pipe, signals to ignore, the path, and argv.
func trampoline(args []string) int {
	if len(args) < 4 {
		fmt.Fprintln(os.Stderr, "zamok: "+argTrampoline+" is for internal use")
		return 70
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return 70
	}
	goPipe, errPipe := os.NewFile(uintptr(fd), "go"), os.NewFile(uintptr(fd+1), "err")
	unix.CloseOnExec(fd)
	unix.CloseOnExec(fd + 1)
	var b [1]byte
	if n, _ := goPipe.Read(b[:]); n != 1 {
		return 70 // nobody would guard the command, and nobody waits for this code
	}
	// zamok ignores TTOU for its own sake; execve gives what is handled its default.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTTOU)
	for _, s := range strings.Split(args[1], ",") {
		if n, err := strconv.Atoi(s); err == nil {
			signal.Ignore(syscall.Signal(n))
		}
	}
	// syscall.Exec, since it also gives the command the file limit that Go raised.
	err = syscall.Exec(args[2], args[3:], os.Environ())
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EINVAL
	}
	_, _ = errPipe.WriteString(strconv.Itoa(int(errno)))
	return 126
}

func signalList(sigs []os.Signal) string {
	var list []string
	for _, s := range sigs {
		if n, ok := s.(syscall.Signal); ok {
			list = append(list, strconv.Itoa(int(n)))
		}
	}
	return strings.Join(list, ",")
}
