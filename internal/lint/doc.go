// Package lint checks rules of this module that no linter knows: which package may import
// which, that everything exported is documented, that no test skips, and that the README's
// programs compile. It holds only tests; each check is also tested on bad code.
package lint
