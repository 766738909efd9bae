package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// root is the module's folder, seen from this one.
const root = "../.."

// A check returns what is wrong with a tree of files, one line each.
type check func(fs.FS) ([]string, error)

// passes fails the test for everything that is wrong with the module.
func (c check) passes(t *testing.T) {
	t.Helper()
	complaints, err := c(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range complaints {
		t.Error(s)
	}
}

// says fails the test unless the complaints about the files are the ones
// wanted.
func (c check) says(t *testing.T, files map[string]string, want ...string) {
	t.Helper()
	tree := make(fstest.MapFS)
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := c(tree)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// walk calls f for every file of the project, but for what git, make and
// properties that failed leave behind.
func walk(tree fs.FS, f func(name string, data []byte) error) error {
	files := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (base == ".git" || base == ".bin" || strings.HasSuffix(name, "testdata/rapid")):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since it was listed
		}
		if err != nil {
			return err
		}
		files++
		return f(name, data)
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("no files found")
	}
	return err
}

// isCode reports whether name is a Go file that the go tool may build.
func isCode(name string) bool {
	return strings.HasSuffix(name, ".go") && !slices.Contains(strings.Split(name, "/"), "testdata")
}
