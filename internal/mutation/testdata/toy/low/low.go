// Package low holds a line that the package above it holds too.
package low

// Less reports whether a is less than b.
func Less(a, b int) bool {
	if a < b {
		return true
	}
	return false
}
