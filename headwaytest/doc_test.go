package headwaytest_test

import (
	"os"
	"strings"
	"testing"
)

// TestPackageComment: the first test in the package's documentation is the one
// that Example runs.
func TestPackageComment(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(example), "\nfunc testPolicy(")
	code, _, _ = strings.Cut(code, "\n}\n")
	code = strings.Replace("func TestPolicy("+code+"\n}\n", "\t\tfmt.Print(rec)\n", "", 1)
	var want strings.Builder
	for line := range strings.Lines(code) {
		if line == "\n" {
			want.WriteString("//\n")
			continue
		}
		want.WriteString("//\t" + line)
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc.go does not have\n%s", want.String())
	}
}
