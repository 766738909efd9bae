package line

// WatchSteps lets a test of another package see how many steps each loop makes of those
// that search for a start or start all that are due, and how many requests wait
// meanwhile. It must come before the first Line.
func WatchSteps(f func(steps, waiting int)) {
	watchSteps = func(_ *locked, steps, waiting int) { f(steps, waiting) }
}
