// Package storerow lets the stores of nested modules look into the rows that package
// store has put. Package store sets its functions when it is initialized: they are for
// the stores of this repository, and no part of what store exports.
package storerow

import "time"

// Check returns store.ErrNewer or store.ErrDamaged where store.Run could not read a row.
var Check func(row []byte) error

// Expires returns from when on a row may be forgotten. The error is Check's.
var Expires func(row []byte) (time.Time, error)
