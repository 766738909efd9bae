package sqlite_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The root's tests are run again over a file, in bubbles with exact times. They are
// compiled unchanged, with one more file that opens the store, so that the root's go.mod
// does not need SQLite.
func TestAgainOverSQLite(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	// Both modules' requirements but for the root's on itself.
	own := regexp.MustCompile(`(?s)\nrequire \(.*`).Find(read("go.mod"))
	own = regexp.MustCompile(`\n\tgithub.com/headway-go/headway .*`).ReplaceAll(own, nil)
	const module = "github.com/headway-go/headway/store/sqlite"
	mod := append(read(filepath.Join(root, "go.mod")), own...)
	mod = append(mod, "\nrequire "+module+" v0.0.0\nreplace "+module+" => ./store/sqlite\n"...)
	modfile := write("go.mod", mod)
	write("go.sum", append(read(filepath.Join(root, "go.sum")), read("go.sum")...))
	code := write("scenes_test.go", read("testdata/scenes.go.txt"))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "scene_sqlite_test.go"): code}})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-C", root, "test", "-mod=mod", "-modfile=" + modfile, "-overlay=" + write("overlay.json", overlay),
		"-count=1", "-v", "-run", "^TestAgainOverAStore$", ".",
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if passed := regexp.MustCompile(`(?m)^ {8}--- PASS: TestAgainOverAStore/sqlite/`).FindAll(out, -1); err != nil || len(passed) < 40 {
		t.Errorf("%d scenes passed, want at least 40; %v\n%s", len(passed), err, out)
	}
}
