//go:build mutation

package mutation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The ways in which a mutation that applies can be wrong.
var (
	errUnsound  = errors.New("the tests do not pass without the mutation")
	errBuild    = errors.New("it does not build")
	errSurvived = errors.New("the test does not fail with the mutation")
)

// A runner runs the mutations of one module.
type runner struct {
	dir   string            // the module's folder
	files []source          // what may be edited there
	tmp   string            // for the binaries without a mutation
	clean map[string]string // those, by package and flags
}

// A baseline is how a mutation's tests do without it.
type baseline struct {
	flags []string // more flags that the tests take
	took  time.Duration
}

// baseline runs the mutation's tests without it.
func (r *runner) baseline(m *mutation) (*baseline, error) {
	key := fmt.Sprint(m.pkg, m.flags)
	bin := r.clean[key]
	if bin == "" {
		var err error
		if bin, err = r.build(m, nil, filepath.Join(r.tmp, strconv.Itoa(len(r.clean)))); err != nil {
			return nil, fmt.Errorf("%w: %w", errUnsound, err)
		}
		r.clean[key] = bin
	}
	b := new(baseline)
	// A property must fail in the same way every time, at once, and leave
	// nothing behind. Only binaries with a property know these flags.
	if usage, _ := exec.Command(bin, "-help").CombinedOutput(); bytes.Contains(usage, []byte("-rapid.seed")) {
		b.flags = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s"}
	}
	start := time.Now()
	out, err := r.test(m, bin, m.tests, b.flags, "-test.v", "-test.timeout=5m")
	b.took = time.Since(start)
	for _, name := range m.tests {
		if !strings.Contains(out, "--- PASS: "+name+" (") {
			return nil, fmt.Errorf("%w: %s: %v\n%s", errUnsound, name, err, out)
		}
	}
	return b, nil
}

// run returns nil when each of the mutation's tests fails with it.
func (r *runner) run(m *mutation, base *baseline, tmp string) error {
	files, err := m.apply(r.files)
	if err != nil {
		return err
	}
	bin, err := r.build(m, files, tmp)
	if err != nil {
		return err
	}
	// A mutation may hang its test: that too is a failure, but a slow one.
	timeout := fmt.Sprintf("-test.timeout=%v", 10*time.Second+10*base.took)
	for _, name := range m.tests {
		out, err := r.test(m, bin, []string{name}, base.flags, timeout)
		if err == nil || !failure.MatchString(out) {
			return fmt.Errorf("%w: %s: %v\n%s", errSurvived, name, err, out)
		}
	}
	return nil
}

// failure matches the output of a test that failed, as opposed to one that was
// killed or did not begin.
var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: |^panic: |^fatal error: `)

// build builds the tests of the mutation's package in a folder of their own,
// with other contents for some files, and returns the binary.
func (r *runner) build(m *mutation, files map[string]string, tmp string) (string, error) {
	tmp, err := filepath.Abs(tmp)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return "", err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for path, text := range files {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		mutated := filepath.Join(tmp, strconv.Itoa(len(overlay.Replace))+".go")
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[abs] = mutated
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return "", err
	}
	bin := filepath.Join(tmp, "tests")
	args := []string{"test", "-c", "-o", bin, "-overlay", list}
	if out, err := r.command(m, "go", args, m.flags).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %v\n%s", errBuild, err, out)
	}
	return bin, nil
}

// test runs tests of a binary, in the folder of the package as go test does.
func (r *runner) test(m *mutation, bin string, names, flags []string, more ...string) (string, error) {
	patterns := make([]string, len(names))
	for i, name := range names {
		levels := strings.Split(name, "/")
		for j, level := range levels {
			levels[j] = "^" + regexp.QuoteMeta(level) + "$"
		}
		patterns[i] = strings.Join(levels, "/")
	}
	more = append(more, "-test.run="+strings.Join(patterns, "|"))
	out, err := r.command(m, bin, flags, more).CombinedOutput()
	return string(out), err
}

func (r *runner) command(m *mutation, name string, args ...[]string) *exec.Cmd {
	cmd := exec.Command(name, slices.Concat(args...)...)
	cmd.Dir = filepath.Join(r.dir, m.pkg)
	return cmd
}

func TestMutations(t *testing.T) {
	all := load(t, "testdata")
	if len(all) == 0 {
		t.Fatal("no mutation found")
	}
	r := &runner{dir: root, files: sourcesOf(t, root), tmp: t.TempDir(), clean: make(map[string]string)}
	part, parts := partOf(t, os.Getenv("PART"))
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%parts != part {
			continue
		}
		m := all[name]
		t.Run(name, func(t *testing.T) {
			base, err := r.baseline(m) // while nothing else runs: before Parallel
			if err != nil {
				t.Fatalf("%s: %v", m.promise, err)
			}
			t.Parallel()
			if err := r.run(m, base, t.TempDir()); err != nil {
				t.Errorf("%s: %v", m.promise, err)
			}
		})
	}
}

// partOf returns which part of how many is to run: "2/3" is every third, from the
// one with index 2 on; nothing is all.
func partOf(t *testing.T, s string) (part, parts int) {
	if s == "" {
		return 0, 1
	}
	if n, err := fmt.Sscanf(s, "%d/%d", &part, &parts); n != 2 || err != nil || part < 0 || part >= parts {
		t.Fatalf("PART=%q: want a part of several, such as 0/3 to 2/3", s)
	}
	return part, parts
}

// TestRunner proves that the runner itself can fail, on a small module.
func TestRunner(t *testing.T) {
	const toy = "testdata/toy"
	r := &runner{dir: toy, files: sourcesOf(t, toy), tmp: t.TempDir(), clean: make(map[string]string)}
	all := load(t, toy)
	for name, want := range map[string]error{
		"noticed":        nil,
		"subtest":        nil,
		"panics":         nil,
		"hangs":          nil,
		"survives":       errSurvived,
		"survives-one":   errSurvived,
		"does-not-build": errBuild,
		"already-failed": errUnsound,
		"no-such-test":   errUnsound,
	} {
		t.Run(name, func(t *testing.T) {
			m := all[name]
			base, err := r.baseline(m)
			if err == nil {
				err = r.run(m, base, t.TempDir())
			}
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
