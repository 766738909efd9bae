package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
)

// measureAlone measures a subject in a new process, which has no memory or goroutines of
// earlier subjects.
func measureAlone(o *options, r *row, s subject) []float64 {
	self := must(os.Executable())
	cmd := exec.Command(self, "-alone", r.name+" | "+s.name, "-each", o.each.String(), fmt.Sprint("-quick=", o.quick))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		panic(fmt.Errorf("%s: %w", s.name, err))
	}
	var values []float64
	for field := range strings.FieldsSeq(string(out)) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			panic(fmt.Errorf("%s: %w", s.name, err))
		}
		values = append(values, v)
	}
	return values
}

// alone measures one subject once, in a process that measureAlone has started.
func alone(o *options, rows []row, which, profile string) {
	for _, r := range rows {
		for _, s := range r.subjects {
			if r.name+" | "+s.name != which || s.setup == nil {
				continue
			}
			runtime.GOMAXPROCS(r.procs)
			measure := s.setup(o)
			if profile != "" {
				file, err := os.Create(profile)
				if err != nil {
					log.Fatal(err)
				}
				defer file.Close()
				if err := pprof.StartCPUProfile(file); err != nil {
					log.Fatal(err)
				}
				defer pprof.StopCPUProfile()
			}
			for _, v := range measure() {
				fmt.Println(v)
			}
			return
		}
	}
	log.Fatalf("no subject is %q", which)
}
