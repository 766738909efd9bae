// Package store is the seam between Headway and what remembers budgets outside
// a process: a file that processes of one machine share and that outlives them,
// or a server that a fleet shares.
//
// A Store is one method that decides a batch of operations, and one that counts.
// All that is difficult about it, the laws, is here already: over anything that
// has transactions a store is a transaction around Run. Memory is the smallest
// one, and storetest.Run says whether another is right.
//
// A store hears no key values. A budget's name ends in the key's digest, made
// with headway's Config.Secret.
//
// # Rows that cannot be read
//
// What is remembered under one name is a row. A row that cannot be read concerns only
// the operations that need it: the rest of the batch is done, and Do returns no error.
//
//   - A damaged row was not written by this module, or not whole. It is set aside,
//     the name begins anew as if it had never been used, and the operation is done.
//     Result.Anew reports it.
//   - A row of a newer version of this module stays as it is: a process that is still
//     to be upgraded must not undo what the others count. Result.Err reports it, and
//     the operation has done nothing. headway's Policy.Store.Down decides about the
//     requests that need it.
//
// Memory and store/sqlite overwrite a damaged row; store/redis keeps it for a week
// under another key.
package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/headway-go/headway/limiter"
)

// A Store remembers budgets. Any number of goroutines and processes may use it.
type Store interface {
	// Do decides ops, in order, in one round trip. Each is decided whole or not
	// at all, and by itself: others may decide theirs in between. It returns one
	// result for each; what concerns one row alone is an error of that result. After an error nobody knows which of them took place. No
	// ops are a question whether the store is there.
	//
	// Do returns soon after ctx is over, with its error. It keeps none of what it
	// was given.
	Do(ctx context.Context, ops []Op) ([]Result, error)
	// Len returns how many budgets are remembered. An idle one, that cannot be
	// told from one never used, is forgotten some time after it has become so,
	// while the store is in use.
	Len(ctx context.Context) (int, error)
}

// An Instant is a time of the store's clock: nanoseconds since the beginning of
// 1970 in UTC. Who asks passes on what the store has told, and compares none of
// them with a clock of its own.
type Instant = int64

// StrictLease is for how long the units of a strict limit are in flight without
// anybody saying so again by OpRenew. Then their process counts as gone, and they
// come back one period later, as if their answer had come at the lease's end.
const StrictLease = 30 * time.Second

// ReserveFor is for how long units that OpTake has set aside, see Op.More, are kept at
// most, UseWithin for how long their process may start requests with them. One that goes
// without a word may have used all, up to UseWithin: so at the end of ReserveFor they count as
// used then.
const (
	ReserveFor = 5 * time.Second
	UseWithin  = time.Second
)

// An OpKind says what an operation does.
type OpKind uint8

const (
	// OpTake takes what Needs say if all of it, and everything that Ears hold,
	// has room now; else nothing, and the result says when it could.
	OpTake OpKind = iota + 1
	// OpDone says that the request ID has its answer, or has ended without one:
	// its units under strict limits come back one period from now.
	OpDone
	// OpRenew says that the request ID is still in flight, for a Lease more.
	OpRenew
	// OpGive gives back what a request has taken at Need.Taken.
	OpGive
	// OpReturn says that of what the request ID has set aside Used starts are used,
	// the last at Due, and that the rest comes back.
	OpReturn
	// OpSpend counts what Needs say as used now, without waiting, into debt if
	// need be. A negative cost gives back the oldest units that still count.
	OpSpend
	// OpRead tells what is left.
	OpRead
	// OpForecast tells when each of Asks would start if they stand in line in this
	// order and nobody else takes anything. It takes nothing.
	OpForecast
	// OpPause makes those wait who hear Ear, and of them those who need the budget
	// Only, if there is one.
	OpPause
	// OpSuccess ends the growing of the pauses that Ears hold, for a request that
	// started at Taken.
	OpSuccess
	// OpLearn takes in what a server has announced to those who hear Ear, or of the
	// budget Only, whoever needs it.
	OpLearn
)

// An Op is one operation. Which fields count depends on its kind.
type Op struct {
	// Kind says what it does.
	Kind OpKind
	// Group is what all budgets and ears of the operation belong to: a policy at a
	// host. A store of several nodes keeps a group on one.
	Group string
	// ID tells the requests in flight apart. It is never zero where a limit is
	// strict.
	ID uint64
	// Needs are the budgets, narrow before wide.
	Needs []Need
	// Audiences are whose pauses and announced limits hold for the request.
	Audiences []string
	// Line: once an OpTake of a line has been refused, later ones of the batch
	// with the same Line, not zero, are skipped. A line is first in, first out.
	Line uint64
	// Due is the instant that the last refusal of the request told, or zero. A
	// Bucket or Spaced takes its units as of it where it has passed by no more than
	// 10 ms, so that late timers do not add up.
	Due Instant
	// Reserve is how many further starts like it an OpTake that takes sets aside for its
	// process: what they need is kept from everybody else, but counts only once it is
	// used. They are fewer where there is less: never more than half of what is left,
	// none under a strict limit or Spaced, and none in a pause or the restart after it.
	Reserve int64
	// Used is how many of these OpReturn reports.
	Used int64
	// Asks are the OpTakes that OpForecast is about.
	Asks []Op

	// Audience and Only say whom OpPause and OpLearn are about.
	Audience, Only string
	// Pause is what OpPause does.
	Pause *Pause
	// Learn is what OpLearn takes in.
	Learn *Learn
	// Taken is when the request of OpSuccess started, and when what OpReturn returns
	// was set aside.
	Taken Instant
}

// A Need is a part of one budget.
type Need struct {
	// Budget is its name within the group.
	Budget string
	// Limit is the limit that it is under. Where it was under another one, what it
	// remembers still counts.
	Limit limiter.Limit
	// Cost is how many units.
	Cost int64
	// Taken is when they began to count, for OpGive.
	Taken Instant
}

// A Pause is a time before which a server asked not to come back.
type Pause struct {
	// For is its length, from now. The longest wins.
	For time.Duration
	// Grow says that nobody said how long: For, doubled each time, up to Most. It
	// does nothing for a request that started, at Started, before the last growth.
	Grow bool
	// Most bounds what Grow makes of it.
	Most time.Duration
	// Started is when the request of the answer started.
	Started Instant
	// Limits are those that it restarts gently under.
	Limits []limiter.Limit
	// Found is above zero where requests without a limit are held too: so many a
	// second succeeded before, and at that rate at least it restarts. Without Limits
	// zero is one.
	Found int64
	// Source is the dialect of the answer.
	Source string
}

// A Learn is what an answer announced of one limit.
type Learn struct {
	// Name, and the period as the server gives it, tell the limits of one server
	// apart.
	Name string
	// Window is that period; zero where the server does not say.
	Window time.Duration
	// Left is how many units are left, Limit how many there are in a window;
	// negative where nobody said it.
	Left, Limit int64
	// Reset is the time until units come back; negative where nobody said it.
	Reset time.Duration
	// Period is how long windows are; zero where nobody said it.
	Period time.Duration
	// Started is when the request of the answer started.
	Started Instant
	// InFlight is how many units of those concerned its process has granted that
	// are not answered yet.
	InFlight int64
	// Pace spreads what is left evenly.
	Pace bool
	// Source is the dialect of the answer.
	Source string
}

// Never is the wait of what can never start.
const Never time.Duration = math.MaxInt64

// A Wait says when a request could start.
type Wait struct {
	// For is the time until then: zero for now, Never for never.
	For time.Duration
	// At is the same instant by the store's clock.
	At Instant
	// AtLeast says that it is a lower bound, since an answer has to come first.
	AtLeast bool
	// Bind is the index of the need that decides, or -1: then it is a pause, or an
	// announced limit, that an ear holds.
	Bind int
	// Pause says that a pause decides, Learned that an announced limit does.
	Pause, Learned bool
	// Name is how the server calls the announced limit.
	Name string
	// Err says why an OpForecast cannot tell: a row that the request needs cannot be
	// read. The other fields mean nothing then.
	Err error
}

// A RowError is a row that could not be read.
type RowError struct {
	// Group and Name say which it is.
	Group, Name string
	// Anew says that the row was set aside, and that the name has begun anew.
	Anew bool
	// Err says why: ErrDamaged, ErrNewer, or what the store reports of this row alone.
	Err error
}

// Error says which row it was, and why.
func (e *RowError) Error() string {
	if e.Anew {
		return fmt.Sprintf("%v (%s of %s, which begins anew)", e.Err, e.Name, e.Group)
	}
	return fmt.Sprintf("%v (%s of %s)", e.Err, e.Name, e.Group)
}

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// A Result is what became of one operation.
type Result struct {
	// OK says that an OpTake has taken.
	OK bool
	// Skipped says that an OpTake was not looked at; see Op.Line.
	Skipped bool
	// Strict says that units that were taken wait for OpAnswer.
	Strict bool
	// UnderPause says that a pause held once, so that the request's success counts; see
	// OpSuccess.
	UnderPause bool
	// Reserved is how many further starts an OpTake has set aside; see Op.More.
	Reserved int64
	// At is when it took place.
	At Instant
	// Wait says when an OpTake that has not taken could.
	Wait
	// Remaining is what is left under each need after an OpTake, OpSpend or OpRead:
	// negative in debt, math.MaxInt64 where nothing is limited.
	Remaining []int64
	// Waits are those of OpForecast.
	Waits []Wait
	// Paused is for how long nobody concerned starts, by an OpPause that made it
	// longer; else zero.
	Paused time.Duration
	// Announced is what OpRead has found in Ears and about Needs; of an OpTake that has not
	// taken the pause or limit that decides, if one does; of OpPause and OpLearn what
	// they have come to.
	Announced []Announced
	// Err, not nil, is a *RowError: the operation needs a row that cannot be read and
	// stays as it is. It has done nothing, and only At counts besides.
	Err error
	// Anew are the rows of the operation that could not be read and have begun anew.
	Anew []*RowError
	// Back, not zero, says that the store's clock has been set back, by that much at
	// least and by a second or more: a row of the operation was ahead of it. What it
	// holds of later than now counts from now on, so that it comes back one period
	// from now, not when the clock is there again.
	Back time.Duration
}

// A Announced is a pause that holds, or an announced limit.
type Announced struct {
	// Audience is where it was found, or the budget that it is about; Only is the
	// budget that a pause is restricted to.
	Audience, Only string
	// Source is the dialect that said it.
	Source string
	// Pause is the time until its end; zero for a limit.
	Pause time.Duration
	// Name and Window are Learn's.
	Name string
	// Window is the limit's period where the server says it, else zero.
	Window time.Duration
	// Left is what is left now.
	Left int64
	// Limit is how many units there are in a window; negative where nobody said it.
	Limit int64
	// Reset is the time until units come back; negative where nobody said it.
	Reset time.Duration
	// Age is the time since the answer.
	Age time.Duration
}
