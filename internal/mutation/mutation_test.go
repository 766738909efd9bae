package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder, seen from this one.
const root = "../.."

// A mutation is an edit that breaks a promise, and the tests that must notice.
type mutation struct {
	promise string
	pkg     string   // the folder of the tests' package
	tests   []string // their names, in full
	flags   []string // for go test
	edits   []edit
}

// An edit replaces text that occurs exactly once in a file.
type edit struct {
	file     string
	old, new string
}

// parse reads a mutation; doc.go shows the form.
func parse(text string) (*mutation, error) {
	m := new(mutation)
	var section *string // where the lines go; nil: the header
	for n, line := range strings.SplitAfter(text, "\n") {
		mark, isMark := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		mark, isEnd := strings.CutSuffix(mark, " --")
		file, isOld := strings.CutPrefix(mark, "old ")
		switch {
		case isMark && isEnd && isOld:
			m.edits = append(m.edits, edit{file: file})
			section = &m.edits[len(m.edits)-1].old
		case isMark && isEnd && mark == "new" && section != nil:
			section = &m.edits[len(m.edits)-1].new
		case section != nil:
			*section += line
		case strings.TrimSpace(line) == "":
		default:
			key, value, _ := strings.Cut(line, ":")
			words := strings.Fields(value)
			switch {
			case key == "promise" && len(words) > 0:
				m.promise = strings.TrimSpace(value)
			case key == "test" && len(words) > 1:
				m.pkg, m.tests = words[0], words[1:]
			case key == "flags":
				m.flags = words
			default:
				return nil, fmt.Errorf("line %d: %q is no line of a header", n+1, line)
			}
		}
	}
	if m.promise == "" || m.pkg == "" || len(m.edits) == 0 {
		return nil, fmt.Errorf("it needs a promise, a test and an edit")
	}
	return m, nil
}

// apply returns the files that the mutation changes, in their new form, by
// path. The paths in the mutation are seen from dir.
func (m *mutation) apply(dir string) (map[string]string, error) {
	files := make(map[string]string)
	for _, e := range m.edits {
		path := filepath.Join(dir, e.file)
		text, ok := files[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		// A line break before both makes the match begin with a whole line.
		text, old := "\n"+text, "\n"+e.old
		if n := strings.Count(text, old); e.old == "" || n != 1 {
			return nil, fmt.Errorf("%s: the old text occurs %d times, not once:\n%s", e.file, n, e.old)
		}
		files[path] = strings.Replace(text, old, "\n"+e.new, 1)[1:]
	}
	return files, nil
}

// load reads the mutations of a folder, by name.
func load(t *testing.T, dir string) map[string]*mutation {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.mut"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*mutation)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parse(string(b))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		all[strings.TrimSuffix(filepath.Base(path), ".mut")] = m
	}
	return all
}

func TestMutationsApply(t *testing.T) {
	for name, m := range load(t, "testdata") {
		if _, err := m.apply(root); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const good = "promise: p\ntest: . TestP\n-- old a.go --\nx\n-- new --\n"
	if _, err := parse(good); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for name, text := range map[string]string{
		"no promise":      strings.Replace(good, "promise: p\n", "", 1),
		"empty promise":   strings.Replace(good, "promise: p", "promise:", 1),
		"no test":         strings.Replace(good, "test: . TestP\n", "", 1),
		"no test's name":  strings.Replace(good, " TestP", "", 1),
		"no edit":         "promise: p\ntest: . TestP\n",
		"unknown key":     "tset: . TestP\n" + good,
		"new without old": "promise: p\ntest: . TestP\n-- new --\nx\n",
	} {
		if m, err := parse(text); err == nil {
			t.Errorf("%s: parsed as %+v, want an error", name, m)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	const toy = "testdata/toy"
	for name, e := range map[string]edit{
		"stale":         {file: "toy.go", old: "\tif a > c {\n"},
		"twice":         {file: "toy.go", old: "\treturn b\n"},
		"empty":         {file: "toy.go"},
		"part of lines": {file: "toy.go", old: "if a > b {\n"},
		"no such file":  {file: "tyo.go", old: "\tif a > b {\n"},
	} {
		if files, err := (&mutation{edits: []edit{e}}).apply(toy); err == nil {
			t.Errorf("%s: applied as %q, want an error", name, files)
		}
	}
}
