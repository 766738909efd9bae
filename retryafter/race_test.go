//go:build race

package retryafter_test

const raceEnabled = true
