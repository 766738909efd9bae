// Package mutation proves that the tests can fail. For every promise it keeps
// a mutation: a small edit that breaks the promise, and the tests that then
// must fail. It holds no code of the module's own, only tests.
//
// A mutation is a file testdata/NAME.mut, written by hand:
//
//	promise: S7 a cancelled waiter frees its place at once
//	test: ./limiter TestCancelFreesThePlace TestModel/cancel
//
//	-- old --
//		l.remove(w)
//		l.replan(now)
//	-- new --
//		l.remove(w)
//
// After "test:" comes the folder of a package, then the names of its tests, as
// "go test -run" takes them but in full; each of them must fail. A line
// "flags:" may follow with flags for "go test", such as -race.
//
// The old text is whole lines, including white space. It must occur exactly once in the
// code of the repository, including nested modules (.go, .lua, .js and .sql files, but not
// tests and testdata). So a mutation stays valid when its code moves to another file, and
// fails the test when its code changes. A longer text is unique. If the same text
// legitimately occurs in two places, "-- old PATH --" names the file or folder of the one
// that is meant; an unnecessary path is an error. The new text may be empty. Further pairs
// may follow, for the same file or others. The result must still compile.
//
// "go test" checks that every mutation still applies. "make mutate" also builds
// each, with go's -overlay flag and no copy of the tree, and runs its tests:
// once without it, when they must pass, and once with it.
package mutation
