package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// checkSkips complains about tests that may pass without having run: a missing
// service is a failure, and what the race detector forbids runs once more without
// it, see ALLOC in the Makefile. A property may skip a step (rt), for it takes
// others.
func checkSkips(tree fs.FS) ([]string, error) {
	var complaints []string
	err := walk(tree, func(name string, data []byte) error {
		if !isCode(name) || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		say := func(pos token.Pos, text string) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: %s", name, fset.Position(pos).Line, text))
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				tag, ok := strings.CutPrefix(c.Text, "//go:build ")
				if ok && tag != "race" && tag != "!race" && tag != "mutation" {
					say(c.Pos(), "CI runs no test under the build tag "+tag)
				}
			}
		}
		for _, decl := range file.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || test.Body == nil {
				continue
			}
			ast.Inspect(test.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Skip") && len(s.Sel.Name) <= len("SkipNow") {
						if x, ok := s.X.(*ast.Ident); !ok || x.Name != "rt" {
							say(n.Pos(), "a test skips")
						}
					}
				case *ast.IfStmt:
					if strings.HasPrefix(test.Name.Name, "Test") && isRace(n.Cond) && returns(n.Body) && !strings.Contains(test.Name.Name, "Alloc") {
						say(n.Pos(), test.Name.Name+" does not run under the race detector, and without Alloc in its name nowhere else")
					}
				}
				return true
			})
		}
		return nil
	})
	return complaints, err
}

// isRace reports whether a condition is that the race detector runs.
func isRace(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "raceEnabled"
	case *ast.SelectorExpr:
		return e.Sel.Name == "RaceEnabled"
	case *ast.BinaryExpr:
		return isRace(e.X) || isRace(e.Y)
	}
	return false
}

// returns reports whether a block ends with a return.
func returns(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	_, ok := b.List[len(b.List)-1].(*ast.ReturnStmt)
	return ok
}

func TestSkips(t *testing.T) { check(checkSkips).passes(t) }

func TestSkipsCheck(t *testing.T) {
	check(checkSkips).says(t, map[string]string{
		"p/p_test.go": `package p

func TestA(t *testing.T) {
	if missing {
		t.Skip("no server")
	}
	b.Skipf("%d", 1)
	tb.SkipNow()
	rt.Skip("another step")
}

func TestB(t *testing.T) {
	if raceEnabled {
		return
	}
	if raceEnabled {
		n /= 10
	}
}

func TestAllocOfC(t *testing.T) {
	if headway.RaceEnabled || testing.Short() {
		return
	}
}
`,
		"p/tags_test.go": "//go:build integration\n\npackage p\n",
		"p/race_test.go": "//go:build race\n\npackage p\n",
		"p/p.go":         "package p\n\nfunc f(t T) { t.Skip() }\n",
	},
		"p/p_test.go:5: a test skips",
		"p/p_test.go:7: a test skips",
		"p/p_test.go:8: a test skips",
		"p/p_test.go:13: TestB does not run under the race detector, and without Alloc in its name nowhere else",
		"p/tags_test.go:1: CI runs no test under the build tag integration",
	)
}
