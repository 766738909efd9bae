package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var nan = math.NaN()

const mainEnv = "HEADWAY_BENCH_MAIN"

// TestMain makes the test binary the program too.
func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestSummarize(t *testing.T) {
	for _, tt := range []struct {
		name string
		xs   []float64
		want summary
	}{
		{"one", []float64{7}, summary{7, 7, 7}},
		{"two: between them", []float64{4, 2}, summary{3, 2.5, 3.5}},
		{"odd", []float64{5, 1, 3}, summary{3, 2, 4}},
		{"one wild value moves nothing", []float64{3, 1e9, 2, 1, 4}, summary{3, 2, 4}},
		{"not measured does not count", []float64{nan, 5, 1, nan, 3}, summary{3, 2, 4}},
	} {
		if got := summarize(tt.xs); got != tt.want {
			t.Errorf("%s: summarize(%v) = %v, want %v", tt.name, tt.xs, got, tt.want)
		}
	}
	if got := summarize([]float64{nan}); !math.IsNaN(got.median) {
		t.Errorf("the median of nothing is %v, want NaN", got.median)
	}
	xs := []float64{3, 1, 2}
	summarize(xs)
	if xs[0] != 3 {
		t.Errorf("summarize has sorted its argument: %v", xs)
	}
}

func TestQuantile(t *testing.T) {
	sorted := []float64{10, 20, 30, 40, 50}
	for q, want := range map[float64]float64{0: 10, 0.25: 20, 0.5: 30, 0.6: 34, 0.99: 49.6, 1: 50} {
		if got := quantile(sorted, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
}

// A machine that becomes slower and slower does not change the ratio of two subjects that
// are measured in turn.
func TestRatiosCancelDrift(t *testing.T) {
	var floor, us []float64
	for drift := 1.0; drift < 3; drift += 0.25 {
		floor, us = append(floor, 10*drift), append(us, 15*drift)
	}
	if got, want := summarize(ratios(us, floor)), (summary{1.5, 1.5, 1.5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// fake is a subject that returns the given numbers, one after another.
func fake(name string, kind kind, values ...[]float64) subject {
	return subject{name, kind, func(*options) func() []float64 {
		return func() []float64 {
			v := values[0]
			values = values[1:]
			return v
		}
	}}
}

func TestRun(t *testing.T) {
	var order []string
	called := func(name string) subject {
		return subject{name, peer, func(*options) func() []float64 {
			return func() []float64 {
				order = append(order, name)
				return []float64{float64(len(order))}
			}
		}}
	}
	r := row{name: "r", procs: 1, rounds: 2, most: 2, metrics: []metric{{name: "n"}}, subjects: []subject{called("a"), called("b"), called("c")}}
	res := r.run(&options{passes: 9})
	if got, want := strings.Join(order, ""), "bcabca"+"cabcab"; got != want {
		t.Errorf("measured in the order %s, want %s", got, want)
	}
	// a came third and sixth in the first pass, eighth and eleventh in the second.
	if got := res.value("a", "n"); len(got) != 2 || got[0] != 4.5 || got[1] != 9.5 {
		t.Errorf("got %v, want the medians of the rounds, 4.5 and 9.5", got)
	}
}

func TestReport(t *testing.T) {
	r := row{
		name: "r", about: "About.", procs: 1,
		metrics: []metric{{name: "ns", digits: 1, ratio: true}, {name: "per s", more: true}},
		subjects: []subject{
			fake("base", floor, []float64{10, 5000}, []float64{20, 5000}),
			fake("Headway", ours, []float64{11, 4000}, []float64{22, 4000}),
			fake("theirs", peer, []float64{12, 4500}, []float64{24, 4500}),
			fake("less", extra, []float64{1, nan}, []float64{1, nan}),
		},
		goals: []goal{
			{"Headway", "ns", "base", 1.1},
			{"Headway", "ns", "base", 1.09},
			{"Headway", "per s", "", 4500},
		},
	}
	res := r.run(&options{passes: 2})
	var got bytes.Buffer
	res.report(&got)
	writeSummary(&got, []*result{res})
	const want = `### r

About. (GOMAXPROCS 1, passes 2)

| | ns | x floor (half of the passes) | per s |
|---|---:|---:|---:|
| base | 15.0 | 1.00 | 5,000 |
| **Headway** | 16.5 | 1.10 | 4,000 |
| theirs | 18.0 | 1.20 | 4,500 |
| less | 1.0 | 0.08 (0.06 to 0.09) | – |

- Headway: 1.10 ns x base; wanted ≤ 1.10: reached.
- Headway: 1.10 ns x base; wanted ≤ 1.09: **missed**.
- Headway: 4,000 per s; wanted ≥ 4,500: **missed**.
- **theirs wins** over Headway: per s: 1.12 of ours.

| row | ours | got | wanted | | best peer |
|---|---|---:|---:|---|---|
| r | Headway | 1.10 ns x base | ≤ 1.10 | reached | theirs: 1.20 |
| r | Headway | 1.10 ns x base | ≤ 1.09 | **missed** | theirs: 1.20 |
| r | Headway | 4,000 per s | ≥ 4,500 | **missed** | theirs: 4,500 |

`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		x      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999.96, 1, "1,000.0"}, {1234567.8, 0, "1,234,568"}, {-1234.5, 2, "-1,234.50"}, {nan, 2, "–"},
	} {
		if got := number(tt.x, tt.digits); got != tt.want {
			t.Errorf("number(%v, %d) = %q, want %q", tt.x, tt.digits, got, tt.want)
		}
	}
}

func TestCalibrate(t *testing.T) {
	var clock time.Duration
	n := calibrate(func(n int) { clock += time.Duration(n) * 25 }, time.Millisecond, func() time.Duration { return clock })
	if n != 40_000 {
		t.Errorf("got n = %d for 25 ns in 1 ms, want 40,000", n)
	}
}

// A row whose service is missing is left out before anything is measured. A row that
// fails, in this goroutine or in another, does not affect other rows.
func TestRowsThatGiveNothing(t *testing.T) {
	n := []metric{{name: "n"}}
	good := func(name string) row {
		return row{name: name, procs: 1, metrics: n, subjects: []subject{fake(name, ours, []float64{1}, []float64{2})}}
	}
	bad := func(name string, setup func(*options) func() []float64) row {
		return row{name: name, procs: 1, metrics: n, subjects: []subject{{name, ours, setup}}}
	}
	missing := good("missing")
	missing.ready = func() error { return errNoRedis }
	there := good("there")
	there.ready = func() error { return nil }
	second := 0
	rows := []row{
		good("first"),
		bad("setup", func(*options) func() []float64 { panic("no setup") }),
		bad("second pass", func(*options) func() []float64 {
			return func() []float64 {
				if second++; second == 2 {
					panic(errors.New("no second pass"))
				}
				return []float64{1}
			}
		}),
		bad("goroutine", func(*options) func() []float64 {
			return func() []float64 {
				var all workers
				all.Go(func() { panic("no goroutine") })
				all.Wait()
				return []float64{1}
			}
		}),
		there, missing, good("last"),
	}
	var out bytes.Buffer
	saved := 0
	rep := measureAll(&out, &options{passes: 2}, rows, func(*report) { saved++ })
	rep.writeSummary(&out)
	var names []string
	for _, r := range rep.results {
		names = append(names, r.row.name)
	}
	if got, want := strings.Join(names, " "), "first there last"; got != want || !rep.failed || saved != 6 {
		t.Errorf("got the rows %s, failed %v, saved %d times; want %s, failed, saved 6 times", got, rep.failed, saved, want)
	}
	for _, want := range []string{
		"- setup: **failed**: no setup.", "- second pass: **failed**: no second pass.", "- goroutine: **failed**: no goroutine.",
		"- missing: **left out**: redis-server is missing: install it (apt-get install redis-server).",
	} {
		if strings.Count(out.String(), want+"\n") != 2 {
			t.Errorf("want %q where it happens and in the summary, got\n%s", want, out.String())
		}
	}
	if first := strings.SplitN(out.String(), "\n", 2)[0]; !strings.HasPrefix(first, "- missing") {
		t.Errorf("the first line is %q, want that a service is missing", first)
	}
	if rep := measureAll(io.Discard, &options{passes: 2}, []row{missing}, func(*report) {}); rep.failed {
		t.Error("a missing service is no failure")
	}
}

// Without redis-server everything else is measured and written.
func TestWithoutRedis(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out.md")
	cmd := exec.Command(self, "-quick", "-passes", "1", "-rows", "fleet|allow/bucket/refused", "-out", file)
	cmd.Env = append(os.Environ(), mainEnv+"=1", "PATH="+t.TempDir())
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"printed": string(printed), "written": string(written)} {
		for _, want := range []string{"- fleet/1 callers: **left out**: redis-server is missing", "### allow/bucket/refused\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", where, want, text)
			}
		}
	}
}

// Every goal and every ratio names a subject that is measured, and no two rows or
// subjects have the same name.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	once := func(name string) {
		if seen[name] {
			t.Errorf("%s comes twice", name)
		}
		seen[name] = true
	}
	for _, r := range allRows() {
		once(r.name)
		res := &result{row: &r, values: map[string][][]float64{}}
		for _, s := range r.subjects {
			once(r.name + " | " + s.name)
			if (s.setup == nil) != (r.together != nil) {
				t.Errorf("%s, %s: want a setup, or a row that measures all together", r.name, s.name)
			}
			res.values[s.name] = make([][]float64, len(r.metrics))
		}
		for _, g := range r.goals {
			res.value(g.subject, g.metric)
			if g.of != "" {
				res.value(g.of, g.metric)
			}
		}
	}
}

// The bare FIFO that others are compared with is correct: one start per interval, in
// order, also if the line was empty in between.
func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		q := fifoQueue(100)
		q.owe(1)
		for range 2 {
			var got []time.Duration
			for _, p := range enqueue(3, func(ctx context.Context, _ int) error { return q.wait(ctx) }) {
				<-p.done
				got = append(got, p.start.Sub(begin))
			}
			slices.Sort(got)
			for i, at := range got {
				if want := got[0] + time.Duration(i)*10*time.Millisecond; at != want {
					t.Errorf("start %d came after %v, want %v", i, at, want)
				}
			}
		}
		if got, want := time.Since(begin), 60*time.Millisecond; got != want {
			t.Errorf("six starts took %v, want %v", got, want)
		}
	})
}
