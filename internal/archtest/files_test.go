package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goFile is one Go file. Its path is relative to the repository, with slashes.
type goFile struct {
	path   string
	source string
	syntax *ast.File
	fset   *token.FileSet
}

func (f *goFile) dir() string { return path.Dir(f.path) }

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the paths that the file imports.
func (f *goFile) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func parse(t *testing.T, name, source string) *goFile {
	t.Helper()
	f := &goFile{path: name, source: source, fset: token.NewFileSet()}
	var err error
	if f.syntax, err = parser.ParseFile(f.fset, name, source, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	return f
}

const repo = "../.."

// repoFiles returns the paths of all files with that ending, relative to the
// repository. It leaves out hidden folders, testdata and the tools in .bin.
func repoFiles(t *testing.T, ending string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(repo, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != repo && (strings.HasPrefix(base, ".") || base == "testdata") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(base, ending) {
			rel, err := filepath.Rel(repo, name)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("no file ends in %q: wrong folder?", ending)
	}
	slices.Sort(names)
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repo, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func goFiles(t *testing.T) []*goFile {
	t.Helper()
	var files []*goFile
	for _, name := range repoFiles(t, ".go") {
		files = append(files, parse(t, name, read(t, name)))
	}
	return files
}

// report fails the test for every complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
