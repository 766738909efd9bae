//go:build !race

package otelheadway_test

// raceEnabled says that the race detector runs, which allocates by itself.
const raceEnabled = false
