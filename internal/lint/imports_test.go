package lint

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/headway-go/headway"

// A rule says what the packages of a folder may import besides the standard
// library.
type rule struct {
	ours   []string // folders of this module; those below them too
	tests  []string // more of them, for tests
	others bool     // other modules
	only   string   // and of these those alone that begin with it; tests any
}

// rules holds the folders that are not free to import what they like.
var rules = map[string]rule{
	".":              {ours: []string{"limiter", "breaker", "retryafter", "store", "internal"}, tests: []string{"headwaytest"}},
	"limiter":        {ours: []string{"internal/law", "internal/line", "internal/show"}, tests: []string{"internal/awake"}},
	"breaker":        {others: true},
	"retryafter":     {},
	"internal/law":   {},
	"internal/awake": {},
	"internal/line":  {ours: []string{"internal/awake", "internal/law"}},
	"debug":          {ours: []string{".", "limiter", "breaker", "internal/hostname", "internal/merge"}, tests: []string{"store"}},
	"otel":           {ours: []string{".", "limiter", "breaker"}, tests: []string{"store"}, others: true, only: "go.opentelemetry.io/otel"},
	"otel/interop":   {ours: []string{".", "limiter", "headwaytest", "otel"}, others: true},
	"store/redis":    {ours: []string{".", "limiter", "store", "internal/law", "internal/storerow"}, others: true, tests: []string{"headwaytest", "store/redis", "store/storetest"}},
	// It counts on its own, so that tests do not check the laws by themselves.
	"headwaytest": {ours: []string{".", "limiter"}},
	// It sits outside of the root, which shares internal/attempt and internal/fault with it.
	"retry":              {ours: []string{".", "limiter", "breaker", "retryafter", "internal/attempt", "internal/awake", "internal/fault", "internal/hostname", "internal/inside", "internal/peek"}, tests: []string{"headwaytest"}, others: true},
	"internal/attempt":   {ours: []string{"retryafter"}},
	"internal/fault":     {},
	"internal/inside":    {ours: []string{"breaker", "retryafter"}},
	"internal/merge":     {},
	"internal/show":      {},
	"internal/peek":      {},
	"internal/hostname":  {others: true, only: "golang.org/x/net/idna"},
	"internal/match":     {ours: []string{"internal/hostname"}},
	"internal/digest":    {},
	"internal/outbox":    {},
	"internal/roster":    {ours: []string{"breaker", "internal/awake", "internal/digest", "internal/hostname", "internal/inside", "internal/law", "internal/line", "internal/outbox", "internal/storeline"}},
	"internal/desk":      {ours: []string{"breaker", "limiter", "store", "internal/awake", "internal/digest", "internal/law", "internal/line", "internal/roster", "internal/storeline"}},
	"internal/respbody":  {},
	"internal/storeline": {ours: []string{"limiter", "store", "internal/awake", "internal/line", "internal/show"}},
	"store":              {ours: []string{"limiter", "internal/law", "internal/storerow"}, tests: []string{"store/storetest"}},
	"store/sqlite":       {ours: []string{".", "limiter", "store"}, others: true, tests: []string{"headwaytest", "store/storetest"}},
	"store/storetest":    {ours: []string{"limiter", "store"}},
	"internal/storerow":  {},
}

// allows reports whether the rule lets a package import another. A test may
// import any other module, and its own package.
func (r rule) allows(dir, imported string, test bool) bool {
	ours, ok := strings.CutPrefix(imported+"/", module+"/")
	if !ok {
		first, _, _ := strings.Cut(imported, "/")
		return r.others && strings.HasPrefix(imported, r.only) || test || !strings.Contains(first, ".")
	}
	ours = path.Clean(ours)
	may := func(folder string) bool { return ours == folder || strings.HasPrefix(ours, folder+"/") }
	return slices.ContainsFunc(r.ours, may) || test && (ours == dir || slices.ContainsFunc(r.tests, may))
}

// ruleOf returns the rule of the nearest folder that has one. The root's holds
// for itself alone.
func ruleOf(dir string) (rule, bool) {
	for d := dir; d != "."; d = path.Dir(d) {
		if r, ok := rules[d]; ok {
			return r, true
		}
	}
	r, ok := rules[dir]
	return r, ok
}

func checkImports(tree fs.FS) ([]string, error) {
	var complaints []string
	err := walk(tree, func(name string, data []byte) error {
		dir := path.Dir(name)
		rule, ok := ruleOf(dir)
		if !ok || !isCode(name) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !rule.allows(dir, imported, strings.HasSuffix(name, "_test.go")) {
				complaints = append(complaints, fmt.Sprintf("%s: may not import %s", name, imported))
			}
		}
		return nil
	})
	return complaints, err
}

func TestImports(t *testing.T) { check(checkImports).passes(t) }

func TestImportsCheck(t *testing.T) {
	const std, other = "net/http", "example.com/other"
	ours := func(dir string) string { return path.Join(module, dir) }
	for _, tt := range []struct {
		file, imports string
		ok            bool
	}{
		{"transport.go", std, true},
		{"transport.go", ours("limiter"), true},
		{"transport.go", ours("breaker"), true},
		{"transport.go", ours("retryafter"), true},
		{"transport.go", ours("internal/line"), true},
		{"transport.go", ours("otel"), false},
		{"transport.go", ours("limiterx"), false},
		{"transport.go", other, false},
		{"transport_test.go", ours(""), true},
		{"transport_test.go", other, true},
		{"transport_test.go", ours("headwaytest"), true},
		{"transport_test.go", ours("otel"), false},
		{"transport.go", ours("headwaytest"), false},

		{"limiter/limiter.go", std, true},
		{"limiter/limiter.go", ours("internal/law"), true},
		{"limiter/limiter.go", ours("internal/line"), true},
		{"limiter/limiter.go", ours("internal/digest"), false},
		{"limiter/limiter.go", ours("breaker"), false},
		{"limiter/limiter.go", ours("retryafter"), false},
		{"limiter/limiter.go", ours(""), false},
		{"limiter/limiter.go", other, false},
		{"limiter/limiter_test.go", ours("limiter"), true},
		{"limiter/limiter_test.go", other, true},
		{"limiter/limiter_test.go", ours(""), false},
		{"limiter/sub/sub.go", other, false},

		{"breaker/breaker.go", other, true},
		{"breaker/breaker.go", ours("limiter"), false},
		{"breaker/breaker.go", ours("retryafter"), false},
		{"breaker/breaker.go", ours(""), false},

		{"retryafter/read.go", std, true},
		{"retryafter/read.go", ours("limiter"), false},
		{"retryafter/read.go", ours("breaker"), false},
		{"retryafter/read.go", ours("internal/law"), false},
		{"retryafter/read.go", ours(""), false},
		{"retryafter/read.go", other, false},

		{"retry/retry.go", other, true},
		{"retry/retry.go", ours(""), true},
		{"retry/retry.go", ours("retryafter"), true},
		{"retry/retry.go", ours("internal/attempt"), true},
		{"retry/retry.go", ours("internal/line"), false},
		{"retry/retry.go", ours("breaker"), true},
		{"retry/retry.go", ours("headwaytest"), false},
		{"retry/retry_test.go", ours("headwaytest"), true},
		{"transport.go", ours("retry"), false},

		{"internal/attempt/attempt.go", ours(""), false},
		{"internal/attempt/attempt.go", other, false},
		{"internal/law/law.go", std, true},
		{"internal/law/law.go", ours("internal/line"), false},
		{"internal/law/law.go", other, false},
		{"internal/law/law_test.go", other, true},
		{"internal/line/line.go", ours("internal/law"), true},
		{"internal/line/line.go", ours("limiter"), false},
		{"internal/line/line.go", other, false},

		{"headwaytest/vendor.go", ours(""), true},
		{"headwaytest/vendor.go", ours("limiter"), true},
		{"headwaytest/vendor.go", ours("internal/law"), false},
		{"headwaytest/vendor.go", other, false},
		{"headwaytest/vendor_test.go", ours("internal/law"), false},
		{"headwaytest/vendor_test.go", other, true},

		{"debug/handler.go", ours(""), true},
		{"debug/handler.go", ours("breaker"), true},
		{"debug/handler.go", ours("internal/line"), false},
		{"debug/handler.go", other, false},
		{"debug/handler_test.go", other, true},

		{"otel/observer.go", ours(""), true},
		{"otel/observer.go", ours("limiter"), true},
		{"otel/observer.go", ours("internal/line"), false},
		{"otel/observer.go", "go.opentelemetry.io/otel/trace", true},
		{"otel/observer.go", other, false},
		{"otel/observer_test.go", other, true},
		{"otel/interop/otlp.go", other, true},
		{"otel/interop/otlp.go", ours("otel"), true},
		{"limiter/testdata/bad.go", other, true},
	} {
		var want []string
		if !tt.ok {
			want = []string{tt.file + ": may not import " + tt.imports}
		}
		check(checkImports).says(t, map[string]string{tt.file: "package p\n\nimport _ \"" + tt.imports + "\"\n"}, want...)
	}
}
