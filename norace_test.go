//go:build !race

package headway

// raceEnabled says that the race detector runs, which allocates by itself.
const raceEnabled = false
