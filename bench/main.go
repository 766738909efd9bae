// Bench measures Headway and its peers side by side: in turn, pass by pass, so that the
// drift of the machine is the same for all, and beside a floor, the least work that any
// implementation has to do. The ratios count. Rows whose service, such as redis-server,
// is missing are left out, and the report lists them.
//
//	go -C bench run .                         # everything; takes a quarter of an hour
//	go -C bench run . -rows 'allow|wait'      # some rows
//	go -C bench run . -quick                  # does it work?
//	go -C bench run . -out RESULTS.md         # the table that is checked in
//	go -C bench run . -alone 'allow/bucket/refused | Headway Bucket' -each 5s -cpuprofile cpu.prof
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

type options struct {
	passes  int
	each    time.Duration // how long a subject is measured in each pass
	quick   bool
	machine *machineShare
}

// scale returns n, or a hundredth of it in a quick run.
func (o *options) scale(n int) int {
	if o.quick {
		return n / 100
	}
	return n
}

func allRows() []row {
	return slices.Concat(allowRows(), waitRows(), parallelRows(), readingRows(), transportRows(), retryRows(), breakerRows(),
		scaleRows(), lineRows(), cancelRows(), idleRows(), loopbackRows(), otelRows(), fleetRows())
}

func main() {
	log.SetFlags(0)
	o := &options{machine: new(machineShare)}
	pattern := flag.String("rows", "", "only the rows whose name matches this `regexp`")
	flag.IntVar(&o.passes, "passes", 9, "how many passes")
	flag.DurationVar(&o.each, "each", 250*time.Millisecond, "how long each is measured in a pass, where it repeats something short")
	flag.BoolVar(&o.quick, "quick", false, "fewer passes, shorter and smaller: to see that it works, not for the numbers")
	out := flag.String("out", "", "also write the report to this `file`")
	one := flag.String("alone", "", "measure one \"`row | subject`\" once, and print the bare numbers")
	profile := flag.String("cpuprofile", "", "with -alone: write a profile to this `file`")
	flag.Parse()
	defer stopServer()
	rows := allRows()
	if *one != "" {
		alone(o, rows, *one, *profile)
		return
	}
	if o.quick {
		o.passes, o.each = min(o.passes, 3), o.each/10
	}
	only, err := regexp.Compile(*pattern)
	if err != nil {
		log.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !only.MatchString(r.name) })
	if len(rows) == 0 {
		for _, r := range allRows() {
			fmt.Println(r.name)
		}
		log.Fatalf("none of these rows matches %q", *pattern)
	}

	if *out != "" { // fail now if the file cannot be written, not in a quarter of an hour
		file, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			log.Fatal(err)
		}
		file.Close()
	}
	rep := measureAll(os.Stdout, o, rows, func(rep *report) {
		if *out != "" {
			if err := save(*out, o, rep); err != nil {
				log.Print(err)
			}
		}
	})
	rep.writeSummary(os.Stdout)
	fmt.Println(o.got())
	if rep.failed {
		stopServer()
		os.Exit(1)
	}
}

// A report holds the results of a run so far.
type report struct {
	results []*result
	details bytes.Buffer
	without []string // for each row without a result, a line with the reason
	failed  bool     // the measurement of one of these failed
}

// measureAll measures rows, prints each, and calls save after each. A row whose service is
// missing is left out, and a row that fails does not affect the others.
func measureAll(w io.Writer, o *options, rows []row, save func(*report)) *report {
	rep := new(report)
	leave := func(r *row, what string, err error) {
		line := fmt.Sprintf("%s: **%s**: %v.", r.name, what, err)
		rep.without = append(rep.without, line)
		fmt.Fprintf(w, "- %s\n\n", line)
	}
	var there []row
	for _, r := range rows {
		if r.ready != nil {
			if err := r.ready(); err != nil {
				leave(&r, "left out", err)
				continue
			}
		}
		there = append(there, r)
	}
	for _, r := range there {
		res, err := r.tryRun(o)
		if err != nil {
			leave(&r, "failed", err)
			rep.failed = true
		} else {
			res.report(io.MultiWriter(w, &rep.details))
			rep.results = append(rep.results, res)
		}
		save(rep)
	}
	return rep
}

// writeSummary writes a line for each goal, and for each row without a result.
func (rep *report) writeSummary(w io.Writer) {
	writeSummary(w, rep.results)
	for _, line := range rep.without {
		fmt.Fprintf(w, "- %s\n", line)
	}
	if len(rep.without) > 0 {
		fmt.Fprintln(w)
	}
}

// save writes a report to a file.
func save(name string, o *options, rep *report) error {
	var b bytes.Buffer
	writeHeader(&b, o)
	rep.writeSummary(&b)
	b.Write(rep.details.Bytes())
	return os.WriteFile(name, append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), 0o644)
}

// got describes how quiet the machine was.
func (o *options) got() string {
	return fmt.Sprintf("The measurements of single goroutines got %s %% of a processor.", number(o.machine.percent(), 0))
}

//go:embed go.mod
var goMod string

func writeHeader(w io.Writer, o *options) {
	fmt.Fprintf(w, "# Side by side\n\nMeasured on %s by\n\n\tgo -C bench run .%s\n\n", time.Now().UTC().Format("2006-01-02"), flagsSet())
	fmt.Fprintf(w, "%s, %s/%s, %d processors (%s). %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), o.got())
	var peers []string
	for line := range strings.Lines(goMod) {
		module, version, ok := strings.Cut(strings.TrimSpace(line), " v")
		if ok && !strings.Contains(version, "indirect") && !strings.HasSuffix(module, "/headway") {
			peers = append(peers, module+" v"+version)
		}
	}
	fmt.Fprintf(w, "With %s.\n\n", strings.Join(peers, ", "))
	fmt.Fprint(w, "Medians of the passes; a ratio is made within each pass, and half of the passes lie between the numbers in brackets. "+
		"Allocations are those of the whole process. Ours is in bold.\n\n")
}

// flagsSet returns the flags of the command line that decide what is measured.
func flagsSet() string {
	var b strings.Builder
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "out" {
			fmt.Fprintf(&b, " -%s='%s'", f.Name, f.Value)
		}
	})
	return b.String()
}

// processor returns the processor's model, as Linux names it.
func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, "\t :\n")
		}
	}
	return "model unknown"
}
