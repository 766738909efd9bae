package inside

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignatures: each function here and the one that it is linked to take the same
// parameters and return the same results.
func TestSignatures(t *testing.T) {
	const module = "github.com/headway-go/headway/"
	linked := 0
	for _, f := range functions(t, ".") {
		for _, c := range f.Doc.List {
			_, target, ok := strings.Cut(c.Text, "//go:linkname "+f.Name.Name+" "+module)
			if !ok {
				continue
			}
			linked++
			pkg, name, _ := strings.Cut(target, ".")
			g := functions(t, filepath.Join("..", "..", pkg))[name]
			if g == nil {
				t.Errorf("%s: there is no %s", f.Name.Name, target)
				continue
			}
			ours := strings.ReplaceAll(types.ExprString(f.Type), pkg+".", "")
			if theirs := types.ExprString(g.Type); ours != theirs {
				t.Errorf("%s is %s, but %s is %s", f.Name.Name, ours, target, theirs)
			}
		}
	}
	if linked != len(functions(t, ".")) {
		t.Errorf("%d functions are linked, and there are %d", linked, len(functions(t, ".")))
	}
}

// functions returns the functions of the package in dir, without its tests.
func functions(t *testing.T, dir string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]*ast.FuncDecl)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = f
			}
		}
	}
	return found
}
