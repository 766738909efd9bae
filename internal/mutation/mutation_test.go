package mutation

import (
	"errors"
	"fmt"
	"io/fs"
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

// An edit replaces text that occurs exactly once in the repository, or, with a
// hint, in the file or folder that it names.
type edit struct {
	hint     string // "" for the whole repository
	old, new string
}

// parse reads a mutation; doc.go shows the form.
func parse(text string) (*mutation, error) {
	m := new(mutation)
	var section *string // where the lines go; nil: the header
	for n, line := range strings.SplitAfter(text, "\n") {
		mark, isMark := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		mark, isEnd := strings.CutSuffix(mark, " --")
		hint, isOld := strings.CutPrefix(mark+" ", "old ")
		switch {
		case isMark && isEnd && isOld:
			m.edits = append(m.edits, edit{hint: strings.TrimSpace(hint)})
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

// A source is a file that mutations may edit.
type source struct {
	name string // its path, seen from the repository's root, with slashes
	path string
	text string
}

// isSource reports whether mutations may edit a file of this name.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".lua", ".js", ".sql":
		return !strings.HasSuffix(name, "_test.go")
	}
	return false
}

// readSources reads the files under dir that mutations may edit: code, but no
// tests, no testdata, and nothing that the go tool ignores. Nested modules are
// read too.
func readSources(dir string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case path == dir:
			return nil
		case name == "testdata" || name[0] == '.' || name[0] == '_':
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isSource(name):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all = append(all, source{name: filepath.ToSlash(name), path: path, text: string(b)})
		return nil
	})
	return all, err
}

// sourcesOf reads the files under dir, and fails the test when it cannot.
func sourcesOf(t *testing.T, dir string) []source {
	t.Helper()
	all, err := readSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// apply returns the files that the mutation changes, in their new form, by
// path.
func (m *mutation) apply(all []source) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range m.edits {
		at, err := e.find(all, changed)
		if err != nil {
			return nil, err
		}
		text, ok := changed[at.path]
		if !ok {
			text = at.text
		}
		changed[at.path] = strings.Replace("\n"+text, "\n"+e.old, "\n"+e.new, 1)[1:]
	}
	return changed, nil
}

// find returns the one file in which the old text occurs, once, after the
// changes that earlier edits made.
func (e *edit) find(all []source, changed map[string]string) (at source, err error) {
	if e.old == "" {
		return at, errors.New("the old text is empty")
	}
	var places []string  // everywhere
	in, inPlaces := 0, 0 // those that the hint names
	for _, s := range all {
		text, ok := changed[s.path]
		if !ok {
			text = s.text
		}
		// A line break before both makes the match begin with a whole line.
		n := strings.Count("\n"+text, "\n"+e.old)
		if n == 0 {
			continue
		}
		in += n
		places = append(places, fmt.Sprintf("%s (%d)", s.name, n))
		if e.hint == "" || s.name == e.hint || strings.HasPrefix(s.name, e.hint+"/") {
			at, inPlaces = s, inPlaces+n
		}
	}
	switch {
	case e.hint != "" && inPlaces != 1:
		return at, fmt.Errorf("the old text occurs %d times in %s, not once; everywhere: %s\n%s",
			inPlaces, e.hint, list(places), e.old)
	case e.hint != "" && in == 1:
		return at, fmt.Errorf("the old text occurs only once, in %s: write %q without %q, so that the code may move\n%s",
			at.name, "-- old --", e.hint, e.old)
	case e.hint == "" && in != 1:
		return at, fmt.Errorf("the old text occurs %d times, not once: %s\n%s", in, list(places), e.old)
	}
	return at, nil
}

// list joins the places for a message.
func list(places []string) string {
	if len(places) == 0 {
		return "in no file"
	}
	return strings.Join(places, ", ")
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
	all := sourcesOf(t, root)
	for name, m := range load(t, "testdata") {
		if _, err := m.apply(all); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const good = "promise: p\ntest: . TestP\n-- old --\nx\n-- new --\n"
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
	all := sourcesOf(t, "testdata/toy")
	for name, c := range map[string]struct {
		e    edit
		want string // part of the error
	}{
		"stale":         {edit{old: "\tif a > c {\n"}, "0 times, not once: in no file"},
		"twice":         {edit{old: "\treturn b\n"}, "2 times, not once: toy.go (2)"},
		"two files":     {edit{old: "\tif a < b {\n"}, "2 times, not once: low/low.go (1), toy.go (1)"},
		"empty":         {edit{}, "empty"},
		"part of lines": {edit{old: "if a > b {\n"}, "0 times"},
		"only in tests": {edit{old: "// TestWeak notices nothing.\n"}, "0 times"},
		"hint too wide": {edit{hint: "toy.go", old: "\treturn b\n"}, "2 times in toy.go, not once; everywhere: toy.go (2)"},
		"wrong hint":    {edit{hint: "lo", old: "\tif a < b {\n"}, "0 times in lo, not once; everywhere: low/low.go (1), toy.go (1)"},
		"needless hint": {edit{hint: "toy.go", old: "\tif a > b {\n"}, `write "-- old --" without "toy.go"`},
	} {
		files, err := (&mutation{edits: []edit{c.e}}).apply(all)
		if err == nil {
			t.Errorf("%s: applied as %q, want an error", name, files)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q, want one that says %q", name, err, c.want)
		}
	}
}

// TestApply: an edit finds its place by itself, or by a file or folder where
// its text rightly occurs in two; later edits see what earlier ones wrote.
func TestApply(t *testing.T) {
	all := sourcesOf(t, "testdata/toy")
	const toy, low = "testdata/toy/toy.go", "testdata/toy/low/low.go"
	for name, c := range map[string]struct {
		edits []edit
		want  map[string]string // a piece of each changed file's new text
	}{
		"by itself": {[]edit{{"", "\tif a > b {\n", "\tif b > a {\n"}}, map[string]string{toy: "\tif b > a {\n"}},
		"by file":   {[]edit{{"toy.go", "\tif a < b {\n", "\tif b > a {\n"}}, map[string]string{toy: "\tif b > a {\n"}},
		"by folder": {[]edit{{"low", "\tif a < b {\n", "\tif b > a {\n"}}, map[string]string{low: "\tif b > a {\n"}},
		"after another": {
			[]edit{{"", "\tif a > b {\n", "\tif b > a {\n"}, {"", "\tif b > a {\n", "\tif b >= a {\n"}},
			map[string]string{toy: "\tif b >= a {\n"},
		},
		"two files": {
			[]edit{{"", "\tif a > b {\n", "\tif b > a {\n"}, {"low", "\tif a < b {\n", "\tif b > a {\n"}},
			map[string]string{toy: "\tif b > a {\n", low: "\tif b > a {\n"},
		},
	} {
		files, err := (&mutation{edits: c.edits}).apply(all)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(files) != len(c.want) {
			t.Errorf("%s: %d files changed, want %d", name, len(files), len(c.want))
		}
		for path, want := range c.want {
			if !strings.Contains(files[path], want) {
				t.Errorf("%s: %s is\n%s\nwithout %q", name, path, files[path], want)
			}
		}
	}
}
