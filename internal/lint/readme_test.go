package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// program matches a whole program in a Markdown file.
var program = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```$")

// vet runs go vet on the programs of a Markdown text, as a part of this module.
func vet(t *testing.T, markdown []byte) error {
	programs := program.FindAllSubmatch(markdown, -1)
	if len(programs) == 0 {
		t.Fatal("no program found")
	}
	for _, p := range programs {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, p[1], 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s", out)
			return err
		}
	}
	return nil
}

func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := vet(t, text); err != nil {
		t.Error(err)
	}
}

func TestReadmeCheck(t *testing.T) {
	good := "Text.\n\n```go\npackage main\n\nfunc main() {}\n```\n\n```sh\nls\n```\n"
	if err := vet(t, []byte(good)); err != nil {
		t.Errorf("%s: %v", good, err)
	}
	bad := good + "\n```go\npackage main\n\nfunc main() { nothing() }\n```\n"
	if err := vet(t, []byte(bad)); err == nil {
		t.Errorf("%s: vetted, want an error", bad)
	}
}
