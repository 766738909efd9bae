// Package lint checks what no linter knows about this module: who may import
// whom, that everything exported is documented, that no test skips, and that the
// README's programs compile. It holds no code, only tests; each check is tested on
// bad code too.
package lint
