// Package toy is the module on which the runner of mutations is tested.
package toy

// Max returns the greater of a and b.
func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// Min returns the lesser of a and b.
func Min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
