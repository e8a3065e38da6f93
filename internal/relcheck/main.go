// Command relcheck builds what a user gets. It publishes the working tree to a
// module proxy in a temporary folder, as it would stand after a release: each
// module without its replace lines, requiring its siblings at one version. Then
// it does what a user does, against that proxy and with an empty module cache:
// requires each library from a new module and builds it, and installs the binary
// with go install PATH@VERSION, which refuses a module that has replace lines.
//
// A module that only works beside its siblings, a file left out by git, or a
// requirement that leaks into a module that should have none fails here and not
// after the tag.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	root    = "github.com/zamok-go/zamok"
	version = "v0.0.1-check"
)

// modules are the folders of the modules that get tags.
var modules = []string{"", "zamokgoredis", "zamokrueidis", "cmd/zamok"}

func main() {
	temp, err := os.MkdirTemp("", "zamok-release-")
	if err == nil {
		err = check(temp)
		os.RemoveAll(temp)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "relcheck:", err)
		os.Exit(1)
	}
}

func check(temp string) error {
	files, err := output(".", nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	env, err := environment(temp)
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := publish(filepath.Join(temp, "proxy"), m, strings.Split(strings.TrimSpace(files), "\n")); err != nil {
			return fmt.Errorf("module %q: %w", m, err)
		}
	}
	for _, m := range modules[:3] {
		if err := use(filepath.Join(temp, "user"+m), modulePath(m), env); err != nil {
			return err
		}
	}
	fmt.Println("go install", root+"/cmd/zamok@"+version)
	_, err = output(temp, append(env, "GOBIN="+temp), "go", "install", root+"/cmd/zamok@"+version)
	return err
}

// environment puts the proxy in front of what this machine has downloaded
// already and of its own proxy.
func environment(temp string) ([]string, error) {
	out, err := output(".", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	proxy := "file://" + filepath.Join(temp, "proxy") + ",file://" + filepath.Join(lines[0], "cache", "download") + "," + lines[1]
	return []string{
		"GOPROXY=" + proxy, "GOMODCACHE=" + filepath.Join(temp, "mod"), "GONOSUMDB=" + root + "*,", "GOFLAGS=-modcacherw", "GOWORK=off",
	}, nil
}

func modulePath(folder string) string {
	if folder == "" {
		return root
	}
	return root + "/" + folder
}

// publish writes the files of one module in the layout of a proxy: see go help
// goproxy.
func publish(proxy, folder string, files []string) error {
	dir := filepath.Join(proxy, filepath.FromSlash(modulePath(folder)), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	goMod, err := released(folder)
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{version + ".info": info, version + ".mod": goMod, "list": version + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, name := range files {
		inside, ok := inModule(folder, name, files)
		if !ok {
			continue
		}
		w, err := z.Create(modulePath(folder) + "@" + version + "/" + inside)
		if err != nil {
			return err
		}
		if inside == "go.mod" {
			_, err = io.WriteString(w, goMod)
		} else {
			err = copyFile(w, name)
		}
		if err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

// inModule returns a file's path within the module in that folder; false when it
// is not part of it. A folder with a go.mod of its own is another module.
func inModule(folder, name string, files []string) (string, bool) {
	inside := name
	if folder != "" {
		var ok bool
		if inside, ok = strings.CutPrefix(name, folder+"/"); !ok {
			return "", false
		}
	}
	for _, f := range files {
		nested, ok := strings.CutSuffix(f, "/go.mod")
		if ok && nested != folder && len(nested) > len(folder) && strings.HasPrefix(name, nested+"/") {
			return "", false
		}
	}
	return inside, true
}

// released returns the go.mod of a module as the release will have it.
func released(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	temp, err := os.CreateTemp("", "zamok-*.mod")
	if err != nil {
		return "", err
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(text); err != nil {
		return "", err
	}
	if err := temp.Close(); err != nil {
		return "", err
	}
	args := []string{"mod", "edit"}
	for _, m := range modules {
		path := modulePath(m)
		args = append(args, "-dropreplace="+path)
		if strings.Contains(string(text), path+" v") {
			args = append(args, "-require="+path+"@"+version)
		}
	}
	if _, err := output(".", []string{"GOFLAGS="}, "go", append(args, temp.Name())...); err != nil {
		return "", err
	}
	edited, err := os.ReadFile(temp.Name())
	if err == nil && strings.Contains(string(edited), "replace") {
		err = fmt.Errorf("go.mod still has a replace line")
	}
	return string(edited), err
}

// use requires one library from a new module and builds it there. The root
// module must bring nothing with it.
func use(dir, path string, env []string) error {
	fmt.Println("go get", path+"@"+version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	program := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", path)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "init", "example.com/user"}, {"get", path + "@" + version}, {"build", "-o", os.DevNull, "."}} {
		if _, err := output(dir, env, "go", args...); err != nil {
			return err
		}
	}
	list, err := output(dir, env, "go", "list", "-m", "all")
	if err != nil {
		return err
	}
	if n := len(strings.Fields(list)); path == root && n != 3 {
		return fmt.Errorf("a user of %s gets more than it:\n%s", root, list)
	}
	return nil
}

func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

func copyFile(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
