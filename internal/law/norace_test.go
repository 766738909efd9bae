//go:build !race

package law

const raceEnabled = false
