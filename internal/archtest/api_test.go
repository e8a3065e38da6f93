package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// maxExports bounds the root package's face: a new concept is a new package.
const maxExports = 60

// exported lists the exported names at the top level of a file, and complains
// about those, and about exported methods and fields of exported types, that say
// nothing of themselves.
func exported(f *goFile) (names, complaints []string) {
	missing := func(kind, name string) {
		complaints = append(complaints, fmt.Sprintf("%s: exported %s %s has no comment", f.path, kind, name))
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d)):
			case d.Doc == nil && !isInterfaceMethod(d):
				missing("function", d.Name.Name)
			}
			if d.Recv == nil && d.Name.IsExported() {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if !spec.Name.IsExported() {
						continue
					}
					names = append(names, spec.Name.Name)
					if d.Doc == nil && spec.Doc == nil {
						missing("type", spec.Name.Name)
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if !name.IsExported() {
							continue
						}
						names = append(names, name.Name)
						if d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
							missing("value", name.Name)
						}
					}
				}
			}
		}
	}
	return names, complaints
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// isInterfaceMethod says whether a method's meaning is that of a well-known
// interface, so that a comment would repeat it.
func isInterfaceMethod(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String"}, d.Name.Name)
}

func TestRootAPI(t *testing.T) {
	var all []string
	for _, f := range goFiles(t) {
		if f.dir() != "." || f.isTest() {
			continue
		}
		names, complaints := exported(f)
		all = append(all, names...)
		report(t, complaints)
	}
	if len(all) == 0 || len(all) > maxExports {
		t.Errorf("the root package exports %d names, 1 to %d are allowed: %v", len(all), maxExports, all)
	}
	t.Logf("the root package exports %d names", len(all))
}

func TestAPIRulesHaveTeeth(t *testing.T) {
	for _, c := range []struct {
		source string
		names  int
		bad    bool
	}{
		{"func F() {}", 1, true},
		{"// F does.\nfunc F() {}", 1, false},
		{"func f() {}", 0, false},
		{"type T struct{}", 1, true},
		{"// T is.\ntype T struct{}\n\nfunc (*T) M() {}", 1, true},
		{"type t struct{}\n\nfunc (t) M() {}", 0, false},
		{"// T is.\ntype T struct{}\n\nfunc (T) Error() string { return \"\" }", 1, false},
		{"var A, B int", 2, true},
		{"// Some.\nconst (\n\tA = 1\n\tB = 2\n)", 2, false},
		{"const (\n\tA = 1 // of a kind\n)", 1, false},
	} {
		names, complaints := exported(parse(t, "a.go", "package p\n\n"+c.source+"\n"))
		if len(names) != c.names || (len(complaints) > 0) != c.bad {
			t.Errorf("%q: names %v, complaints %q; want %d names, complaints: %v", c.source, names, complaints, c.names, c.bad)
		}
	}
}
