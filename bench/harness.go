package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A row is one task that Headway and its peers do side by side.
type row struct {
	name     string
	about    string // what is done and how, for readers of the report
	procs    int    // GOMAXPROCS
	rounds   int    // measurements of each subject in a pass, whose value is their median; zero: one
	most     int    // the most passes that are useful; zero: any number
	alone    bool   // each measurement is in a new process
	metrics  []metric
	subjects []subject
	// together measures all subjects at once, in their order, if taking turns is too
	// coarse. They have no setup then.
	together func(o *options) (measure func() [][]float64)
	goals    []goal
	// ready returns an error if something that the row needs is missing; nil: nothing
	// is needed. It is called before anything is measured, and may start a service.
	ready func() error
}

// A metric is one of the numbers that each measurement of a row returns.
type metric struct {
	name    string
	digits  int  // after the point
	ratio   bool // show its ratio to the floor
	more    bool // more is better
	neutral bool // does not say which subject is better
}

// A subject is an implementation that is measured. Ratios are to the first floor of a row.
type subject struct {
	name string
	kind kind
	// setup prepares, and returns a function that measures once: a number for each of
	// the row's metrics, NaN for one that does not apply.
	setup func(o *options) (measure func() []float64)
}

type kind uint8

const (
	floor kind = iota
	ours
	peer
	extra // Headway in another form, or a peer that does less: reported, not compared
)

// A goal is the target of a subject in one metric: at most (at least, if more is better)
// factor times the value of another subject, of; or factor itself, if of is empty.
type goal struct {
	subject, metric, of string
	factor              float64
}

// A result holds the values of a row's passes.
type result struct {
	row    *row
	passes int
	values map[string][][]float64 // of a subject: by metric, then by pass
}

// tryRun is like run, and returns a panic as an error.
func (r *row) tryRun(o *options) (res *result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("%v", v)
		}
	}()
	return r.run(o), nil
}

// run measures a row pass by pass. In each pass every subject has its turn, and each pass
// begins with another subject, so that no drift of the machine favours one.
func (r *row) run(o *options) *result {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.procs))
	res := &result{row: r, passes: o.passes, values: map[string][][]float64{}}
	if r.most > 0 {
		res.passes = min(o.passes, r.most)
	}
	measure := r.together
	if measure == nil {
		measure = r.inTurn
	}
	pass := measure(o)
	for range res.passes {
		for i, values := range pass() {
			name := r.subjects[i].name
			res.values[name] = appendEach(res.values[name], values)
		}
	}
	return res
}

// inTurn measures a pass subject by subject.
func (r *row) inTurn(o *options) func() [][]float64 {
	rounds := max(1, r.rounds)
	share := *o
	share.each /= time.Duration(rounds)
	measures := make([]func() []float64, len(r.subjects))
	for i, s := range r.subjects {
		if r.alone {
			measures[i] = func() []float64 { return measureAlone(o, r, s) }
		} else {
			measures[i] = s.setup(&share)
		}
	}
	pass := 0
	return func() [][]float64 {
		pass++
		got := make([][][]float64, len(r.subjects)) // by metric, then by round
		for range rounds {
			for k := range r.subjects {
				i := (pass + k) % len(r.subjects)
				runtime.GC()
				got[i] = appendEach(got[i], measures[i]())
			}
		}
		medians := make([][]float64, len(r.subjects))
		for i := range got {
			for _, values := range got[i] {
				medians[i] = append(medians[i], summarize(values).median)
			}
		}
		return medians
	}
}

// appendEach appends to each list the value with the same index.
func appendEach(lists [][]float64, values []float64) [][]float64 {
	if lists == nil {
		lists = make([][]float64, len(values))
	}
	for i, v := range values {
		lists[i] = append(lists[i], v)
	}
	return lists
}

// value returns a subject's values in a metric, pass by pass.
func (r *result) value(name, what string) []float64 {
	i := slices.IndexFunc(r.row.metrics, func(m metric) bool { return m.name == what })
	if i < 0 || r.values[name] == nil {
		panic("row " + r.row.name + " has no " + what + " of " + name)
	}
	return r.values[name][i]
}

// perOp are the metrics of ops and parallelOps.
var perOp = []metric{{name: "ns", digits: 1, ratio: true}, {name: "allocs", digits: 1}}

// rounds is how often a row of ops measures each subject within a pass.
const rounds = 5

// An operation does something short n times.
type operation func(n int)

// ops measures an operation in processor time, including garbage collection, so that
// other processes do not count. With GOMAXPROCS 1, that is the time on a quiet machine.
func ops(prepare func() operation) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		op := prepare()
		n := calibrate(op, o.each, cpuTime)
		return func() []float64 {
			wall := time.Now()
			ns, allocs, took := perOperation(op, n, cpuTime)
			o.machine.add(took, time.Since(wall))
			return []float64{ns, allocs}
		}
	}
}

// parallelOps measures an operation of two goroutines at once by the clock: the total
// time divided by the number of operations. Without contention, that is half of the
// time of one operation.
func parallelOps(prepare func() operation) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		one := prepare()
		both := func(n int) {
			var wg workers
			wg.Go(func() { one(n / 2) })
			wg.Go(func() { one(n - n/2) })
			wg.Wait()
		}
		n := calibrate(both, o.each, sinceStart)
		return func() []float64 {
			ns, allocs, _ := perOperation(both, n, sinceStart)
			return []float64{ns, allocs}
		}
	}
}

// workers are goroutines of a measurement. Wait panics if one of them has.
type workers struct {
	all    sync.WaitGroup
	once   sync.Once
	failed any
}

func (w *workers) Go(f func()) {
	w.all.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				w.once.Do(func() { w.failed = v })
			}
		}()
		f()
	})
}

func (w *workers) Wait() {
	w.all.Wait()
	if w.failed != nil {
		panic(w.failed)
	}
}

// perOperation does op n times, and returns the time and allocations of one, and the
// total time.
func perOperation(op operation, n int, clock func() time.Duration) (ns, allocs float64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := clock()
	op(n)
	took = clock() - start
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), took
}

// calibrate returns an n for which op takes about the given time.
func calibrate(op operation, long time.Duration, clock func() time.Duration) int {
	for n := 100; ; n *= 3 {
		start := clock()
		op(n)
		if took := clock() - start; took > long/4 {
			return max(2, int(float64(n)*float64(long)/float64(took)))
		}
	}
}

var started = time.Now()

func sinceStart() time.Duration { return time.Since(started) }

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A machineShare is the part of a processor that the measurements received.
type machineShare struct{ cpu, wall time.Duration }

func (s *machineShare) add(cpu, wall time.Duration) { s.cpu += cpu; s.wall += wall }

// percent returns the share in percent, or NaN if nothing was added.
func (s *machineShare) percent() float64 {
	if s.wall == 0 {
		return math.NaN()
	}
	return 100 * float64(s.cpu) / float64(s.wall)
}
