//go:build race

package match

// raceEnabled says that the race detector runs, which allocates by itself.
const raceEnabled = true
