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

// A row is one thing that is done by ours and by theirs, side by side.
type row struct {
	name     string
	about    string // what is done and how, for the reader of the report
	procs    int    // GOMAXPROCS
	rounds   int    // how often each comes in a pass, whose value is the median; zero: once
	most     int    // the most passes that make sense; zero: any number
	alone    bool   // each measurement in a process of its own
	metrics  []metric
	subjects []subject
	// together measures all subjects at once, in their order, where they have to
	// be closer to each other than by turns. They have no setup then.
	together func(o *options) (measure func() [][]float64)
	goals    []goal
	// ready says what the row needs and is missing here; nil: nothing is needed. It is
	// asked before anything is measured, and may start a service.
	ready func() error
}

// A metric is one of the numbers that every measurement of a row gives.
type metric struct {
	name   string
	digits int  // after the point
	ratio  bool // show its ratio to the floor
	more   bool // more is better
	aside  bool // says nothing about who is better
}

// A subject is who does it. Ratios are to the first floor of a row.
type subject struct {
	name string
	kind kind
	// setup prepares, and returns what measures once: a number for each of the
	// row's metrics, NaN for one that does not apply.
	setup func(o *options) (measure func() []float64)
}

type kind uint8

const (
	floor kind = iota
	ours
	peer
	aside // ours in another shape, or a peer that does less: shown, not compared
)

// A goal is what a subject is to reach in one metric: at most (at least, where
// more is better) factor times what another does; or factor itself, where of is
// empty.
type goal struct {
	who, metric, of string
	factor          float64
}

// A result holds what the passes of a row have given.
type result struct {
	row    *row
	passes int
	values map[string][][]float64 // of a subject: by metric, then by pass
}

// tryRun is run, and returns as an error what makes it panic.
func (r *row) tryRun(o *options) (res *result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("%v", v)
		}
	}()
	return r.run(o), nil
}

// run measures a row pass by pass. In each pass every subject comes in turn,
// and each pass begins with another, so that no drift of the machine favours
// one.
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

// appendEach appends to each list the value at its place.
func appendEach(lists [][]float64, values []float64) [][]float64 {
	if lists == nil {
		lists = make([][]float64, len(values))
	}
	for i, v := range values {
		lists[i] = append(lists[i], v)
	}
	return lists
}

// value returns what the passes have given for a subject in a metric.
func (r *result) value(who, what string) []float64 {
	i := slices.IndexFunc(r.row.metrics, func(m metric) bool { return m.name == what })
	if i < 0 || r.values[who] == nil {
		panic("row " + r.row.name + " has no " + what + " of " + who)
	}
	return r.values[who][i]
}

// perOp are the metrics of ops and parallelOps, a floor's ratio included.
var perOp = []metric{{name: "ns", digits: 1, ratio: true}, {name: "allocs", digits: 1}}

// rounds is how often a row of ops measures each subject within a pass.
const rounds = 5

// An operation does something short n times.
type operation func(n int)

// ops measures an operation in processor time, garbage collection included, so
// that other processes do not count. With GOMAXPROCS 1 it is what a clock would
// show on a quiet machine.
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

// parallelOps measures an operation of two goroutines at once by the clock: the
// time of all divided by the number of all, which is half of that of one when
// nothing is in the way.
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

// workers are goroutines of a measurement, whose panics are those of Wait.
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

// perOperation does op n times and returns time and allocations of one, and the
// time of all.
func perOperation(op operation, n int, clock func() time.Duration) (ns, allocs float64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := clock()
	op(n)
	took = clock() - start
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), took
}

// calibrate returns an n with which op takes about as long as it should.
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

// A machineShare is how much of a processor the measurements got.
type machineShare struct{ cpu, wall time.Duration }

func (s *machineShare) add(cpu, wall time.Duration) { s.cpu += cpu; s.wall += wall }

// percent returns NaN before anything was added.
func (s *machineShare) percent() float64 {
	if s.wall == 0 {
		return math.NaN()
	}
	return 100 * float64(s.cpu) / float64(s.wall)
}
