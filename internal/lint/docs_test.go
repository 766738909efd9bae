package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// checkDocs complains about exported identifiers without a doc comment and
// packages without a package comment. Programs and internal packages may do
// without the former.
func checkDocs(tree fs.FS) ([]string, error) {
	var complaints []string
	described := make(map[string]bool) // by folder: has a package comment
	err := walk(tree, func(name string, data []byte) error {
		if !isCode(name) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		described[dir] = described[dir] || file.Doc != nil
		if file.Name.Name == "main" || slices.Contains(strings.Split(dir, "/"), "internal") {
			return nil
		}
		for _, id := range undocumented(file) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: %s has no doc comment", name, fset.Position(id.pos).Line, id.name))
		}
		return nil
	})
	for _, dir := range slices.Sorted(maps.Keys(described)) {
		if !described[dir] {
			complaints = append(complaints, fmt.Sprintf("%s: the package has no package comment", dir))
		}
	}
	return complaints, err
}

type identifier struct {
	name string
	pos  token.Pos
}

// undocumented returns the exported identifiers of a file without a doc
// comment. A comment at the end of the line counts, but for functions; a
// comment on a group of constants or variables counts for all of them.
func undocumented(file *ast.File) []identifier {
	var missing []identifier
	need := func(prefix string, names []*ast.Ident, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if doc.Text() != "" {
				return
			}
		}
		for _, name := range names {
			if name.IsExported() {
				missing = append(missing, identifier{prefix + name.Name, name.Pos()})
			}
		}
	}
	// members looks at the fields and methods in a type.
	var members func(prefix string, typ ast.Expr)
	members = func(prefix string, typ ast.Expr) {
		ast.Inspect(typ, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncType:
				return false // parameters are no members
			case *ast.Field:
				need(prefix, n.Names, n.Doc, n.Comment) // an embedded one has no name
				if len(n.Names) > 0 && n.Names[0].IsExported() {
					members(prefix+n.Names[0].Name+".", n.Type)
				}
				return false
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			prefix := ""
			if decl.Recv != nil {
				receiver := receiverOf(decl)
				if !ast.IsExported(receiver) {
					continue
				}
				prefix = receiver + "."
			}
			need(prefix, []*ast.Ident{decl.Name}, decl.Doc)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					need("", spec.Names, decl.Doc, spec.Doc, spec.Comment)
				case *ast.TypeSpec:
					if decl.Lparen.IsValid() {
						need("", []*ast.Ident{spec.Name}, spec.Doc, spec.Comment)
					} else {
						need("", []*ast.Ident{spec.Name}, decl.Doc, spec.Comment)
					}
					if spec.Name.IsExported() {
						members(spec.Name.Name+".", spec.Type)
					}
				}
			}
		}
	}
	return missing
}

// receiverOf returns the name of a method's type.
func receiverOf(decl *ast.FuncDecl) string {
	typ := decl.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr: // type parameters
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func TestDocs(t *testing.T) { check(checkDocs).passes(t) }

func TestDocsCheck(t *testing.T) {
	c := check(checkDocs)
	const undocumented = `// Package p is documented, what it exports is not.
package p

const A = 1

var B, b = 1, 2

const (
	C = 1
)

type D struct {
	E, e int
	F    struct{ G int }
	H    []struct{ I int }
	Embedded
}

type J interface {
	K(L int)
}

type Embedded[T any] struct{ m int }

func (*Embedded[T]) N() {}

func (D) O() {}

func P() {} // P has only this

type (
	Q int
)

//go:noinline
func R() {}
`
	c.says(t, map[string]string{"p/p.go": undocumented},
		"p/p.go:4: A has no doc comment",
		"p/p.go:6: B has no doc comment",
		"p/p.go:9: C has no doc comment",
		"p/p.go:12: D has no doc comment",
		"p/p.go:13: D.E has no doc comment",
		"p/p.go:14: D.F has no doc comment",
		"p/p.go:14: D.F.G has no doc comment",
		"p/p.go:15: D.H has no doc comment",
		"p/p.go:15: D.H.I has no doc comment",
		"p/p.go:19: J has no doc comment",
		"p/p.go:20: J.K has no doc comment",
		"p/p.go:23: Embedded has no doc comment",
		"p/p.go:25: Embedded.N has no doc comment",
		"p/p.go:27: D.O has no doc comment",
		"p/p.go:29: P has no doc comment",
		"p/p.go:32: Q has no doc comment",
		"p/p.go:36: R has no doc comment",
	)
	// The same is allowed in packages that are not documented.
	c.says(t, map[string]string{
		"internal/p/p.go": undocumented,
		"p/p_test.go":     undocumented,
		"p/main.go":       strings.Replace(undocumented, "package p", "package main", 1),
	})
	c.says(t, map[string]string{"p/p.go": `// Package p is documented.
package p

// The letters.
const (
	A = 1
	B = 2
)

var C = 1 // at the end of the line

// D has members.
type D struct {
	// E and F are documented together.
	E, F int
	G    int // at the end of the line
	h    struct{ I int }
}

// J has a method.
type J interface {
	// K does nothing.
	K(L int)
}

type hidden struct{ M int }

func (hidden) N() {}
`})
	c.says(t, map[string]string{
		"bare/p.go":        "package p\n",
		"tested/p.go":      "package p\n",
		"tested/p_test.go": "// Package p is described in a test only.\npackage p\n",
		"two/a.go":         "package p\n",
		"two/b.go":         "// Package p is described once.\npackage p\n",
	},
		"bare: the package has no package comment",
		"tested: the package has no package comment",
	)
}
