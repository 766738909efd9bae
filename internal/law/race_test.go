//go:build race

package law

import "flag"

const raceEnabled = true

// Nothing here runs in several goroutines but a few tests that say so. Under the race
// detector properties draw fewer cases; make test runs all of them without it.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
