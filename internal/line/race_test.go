//go:build race

package line

import "flag"

const raceEnabled = true

// Under the race detector properties draw fewer cases; make test runs all of them
// without it.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
