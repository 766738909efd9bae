// Package store is the seam between Headway and what remembers budgets outside
// a process: a file that processes of one machine share and that outlives them,
// or a server that a fleet shares.
//
// A Store is one method that decides a batch of operations, and one that counts.
// The difficult part, the laws, is here already: over anything that
// has transactions a store is a transaction around Run. Memory is the smallest
// one, and storetest.Run checks another.
//
// A store never receives a key's value. A budget's name ends in the key's digest, made
// with headway's Config.Secret.
//
// # An example
//
// Two processes, A and B, share the budget "b" of 10 per second. A reserves starts, so
// that the next ones need no round trip:
//
//	  ms  process  operation                  result                      row "b" afterwards
//	   0  A        OpTake, Reserve 9          OK, 4 reserved, 5 left      0:1             4 reserved
//	  10  B        five times OpTake          OK, the last leaves 0       0:1 10:5        4 reserved
//	  20  B        OpTake                     refused for 980 ms          unchanged
//	 100  A        OpReturn, Used 3, Due 100  one unit is returned        0:1 10:5 100:3
//	 110  B        OpTake                     OK, 0 left                  0:1 10:5 100:3 110:1
//	1000                                      the unit of 0 is free again
//
// A gets 4 of the 9 starts that it asks for, since a reservation is never more than half
// of what is left. At 20 ms six units count and four are reserved, so that B has to wait
// until the first counts no more. The three starts that A has made meanwhile count from
// Due on, the latest that any of them can have been: late rather than early.
//
// # Invariants
//
//   - An operation is done whole or not at all: each of its budgets takes its units, and
//     what its audiences have been announced has room, or nothing changes.
//   - Operations are decided in the order of the batch. After a refused OpTake of a line
//     later ones of the same line are skipped: no request overtakes another.
//   - All instants are of the store's clock. A process hands them back as they are, and
//     compares none with its own clock.
//   - Reserved units are available to their process alone. They count from their last
//     use on, and where OpReturn never comes, from the end of UseWithin.
//   - Units of a strict limit are in flight until OpDone, or until StrictLease has passed
//     since the last OpRenew: the death of a process blocks no budget.
//   - An announced limit counts the starts of all processes, and each number that a response
//     announces corrects that count. A number is compared with the count at the request's
//     start, of which its Mark tells, so that no process need know what others have in flight.
//   - A row is written by this package alone, and a row of a newer version is never
//     overwritten. An expired row cannot be told from one never written.
//
// # Rows that cannot be read
//
// What is remembered under one name is a row. A row that cannot be read concerns only
// the operations that need it: the rest of the batch is done, and Do returns no error.
//
//   - A damaged row was not written by this module, or is not complete. It is set aside,
//     the name begins anew as if it had never been used, and the operation is done.
//     Result.Anew reports it.
//   - A row of a newer version of this module stays as it is: a process that is still
//     to be upgraded must not undo what the others count. Result.Err reports it, and
//     the operation has no effect. headway's Policy.Store.Down decides about the
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
	// at all, and by itself: operations of other processes may come in between. It
	// returns one result for each; a problem with one row is an error of the results
	// that need it. After an error of Do itself it is unknown which operations took
	// place. Without ops, Do only checks that the store can be reached.
	//
	// Do returns soon after ctx is done, with its error. It keeps none of its
	// arguments.
	Do(ctx context.Context, ops []Op) ([]Result, error)
	// Len returns how many budgets are remembered. An idle budget, which cannot be
	// told from one never used, is forgotten some time after it has become so,
	// while the store is in use.
	Len(ctx context.Context) (int, error)
}

// An Instant is a time of the store's clock: nanoseconds since the beginning of
// 1970 in UTC. Callers pass on the instants that the store has returned, and compare
// none of them with a clock of their own.
type Instant = int64

// StrictLease is for how long the units of a strict limit stay in flight without
// OpRenew. Then their process counts as gone, and they
// return one period later, as if their response had come at the lease's end.
const StrictLease = 30 * time.Second

// ReserveFor is how long units that OpTake has reserved, see Op.Reserve, are kept at
// most; UseWithin is how long their process may start requests with them. A process that
// ends without OpReturn may have used all of them, up to UseWithin: at the end of
// ReserveFor they count as used then.
const (
	ReserveFor = 5 * time.Second
	UseWithin  = time.Second
)

// An OpKind says what an operation does.
type OpKind uint8

const (
	// OpTake takes all of Needs if there is room for it now, and for one unit of
	// what has been announced to Audiences; else nothing, and the result says when
	// there is.
	OpTake OpKind = iota + 1
	// OpDone reports that the request ID has its response, or has ended without one:
	// its units under strict limits return one period from now.
	OpDone
	// OpRenew reports that the request ID is still in flight, for another StrictLease.
	OpRenew
	// OpGive gives back what a request has taken at Need.Taken.
	OpGive
	// OpReturn reports that of the starts that the request ID has reserved Used were
	// used, the last at Due. The rest is returned.
	OpReturn
	// OpSpend counts Needs as used now, without waiting, into debt if
	// need be. A negative cost gives back the oldest units that still count.
	OpSpend
	// OpRead reports what is left.
	OpRead
	// OpForecast reports when each of Asks would start if they wait in line in this
	// order and no other request arrives. It takes nothing.
	OpForecast
	// OpPause makes the requests of Audience wait; where Only is set, those of them
	// that need this budget.
	OpPause
	// OpSuccess stops the growth of the pauses of Audiences, for a request that
	// started at Taken.
	OpSuccess
	// OpLearn records a limit that a server has announced to Audience; where Only is
	// set, one that concerns every request that needs this budget.
	OpLearn
)

// An Op is one operation. Its kind decides which fields count.
type Op struct {
	// Kind is what it does.
	Kind OpKind
	// Group is what all budgets and audiences of the operation belong to: a policy at a
	// host. A store of several nodes keeps a group on one.
	Group string
	// ID identifies the request among those in flight. It is never zero where a limit is
	// strict.
	ID uint64
	// Needs are the budgets, narrow before wide.
	Needs []Need
	// Audiences are those whose pauses and announced limits apply to the request.
	Audiences []string
	// Line, if not zero, is the line that the request waits in: once an OpTake of a
	// line has been refused, later ones of the batch are skipped. A line is first in,
	// first out.
	Line uint64
	// Due is the instant that the last refusal of the request reported, or zero. A
	// Bucket or Spaced takes its units as of Due where that has passed by no more than
	// 10 ms, so that late timers do not add up.
	Due Instant
	// Reserve is how many further starts an OpTake that succeeds reserves for its
	// process. Their units are available to this process alone, and count only once
	// they are used. There are fewer where less is left: never more than half of what is
	// left, none under a strict limit or Spaced, and none in a pause or the restart
	// after it.
	Reserve int64
	// Used is how many reserved starts OpReturn reports.
	Used int64
	// Asks are the OpTakes that OpForecast is about.
	Asks []Op

	// Audience and Only are whom OpPause and OpLearn concern.
	Audience, Only string
	// Pause is that of OpPause.
	Pause *Pause
	// Learn is that of OpLearn.
	Learn *Learn
	// Taken is when the request of OpSuccess started, and when the starts were reserved
	// that OpReturn returns.
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

// A Pause is a time for which a server wants no requests.
type Pause struct {
	// For is its length, from now. The longest pause wins.
	For time.Duration
	// Grow is set where the server did not say how long: the pause is For, doubling
	// each time, up to Most. It has no effect for a request that started, at Started,
	// before the last growth.
	Grow bool
	// Most bounds the growth.
	Most time.Duration
	// Started is when the request of the response started.
	Started Instant
	// Limits are those that requests restart gently under.
	Limits []limiter.Limit
	// Found is above zero where requests without a limit are paused too: this many
	// succeeded in a second before, and they restart at that rate at least. Without
	// Limits zero is one.
	Found int64
	// Source is the dialect of the response.
	Source string
}

// A Mark is what an announced limit had counted when a request had started. It makes the
// number in the request's response comparable with the count at a later instant.
type Mark struct {
	// Audience is where the limit is kept: an audience or a budget.
	Audience string
	// Name is the limit's, as in its Learn.
	Name string
	// Window is the limit's, as in its Learn.
	Window time.Duration
	// Used is how many units counted, those of the request among them.
	Used int64
	// InFlight is how many units were in flight before the request started, as far as its
	// process knows.
	InFlight int64
	// Generation tells which count that is: after a while without announcements, or when it
	// shows that the server counts otherwise, another one begins.
	Generation uint32
}

// A Learn is what a response announced of one limit.
type Learn struct {
	// Name and Window tell the limits of one server apart.
	Name string
	// Window is the limit's period as the server gives it, or zero.
	Window time.Duration
	// Left is how many units are left, Limit how many there are in a window;
	// negative where the server did not say.
	Left, Limit int64
	// Reset is the time until units return; negative where the server did not say.
	Reset time.Duration
	// Period is how long windows are; zero where the server did not say.
	Period time.Duration
	// Resets is what Reset means by the server's documentation; see retryafter.ResetKind.
	Resets uint8
	// Whole is set where Reset is in whole seconds.
	Whole bool
	// Early is set where Reset is when the server wants the next request: units may return
	// later.
	Early bool
	// Most is for how long the limit holds after this announcement; zero: as long as it may
	// matter.
	Most time.Duration
	// Refused is set where the response has refused the request.
	Refused bool
	// Started is when the request of the response started.
	Started Instant
	// Own is how many units that request took.
	Own int64
	// Mark is that of its OpTake for this limit; zero for none.
	Mark Mark
	// InFlight is how many units of the requests concerned its process has in flight, besides.
	InFlight int64
	// RuleLimit is the N of the rule that the limit is; zero where it is none.
	RuleLimit int64
	// RulePeriod is the period of that rule.
	RulePeriod time.Duration
	// RuleFills is set where that rule is a Bucket.
	RuleFills bool
	// Pace spreads what is left evenly.
	Pace bool
	// Source is the dialect of the response.
	Source string
}

// Never is the wait of what can never start.
const Never time.Duration = math.MaxInt64

// A Wait is when a request could start.
type Wait struct {
	// For is the time until then: zero for now, Never for never.
	For time.Duration
	// At is the same instant by the store's clock.
	At Instant
	// AtLeast is set where it is a lower bound, since a response has to come first.
	AtLeast bool
	// Bind is the index of the need that decides, or -1 where a pause or an announced
	// limit of an audience does.
	Bind int
	// Pause is set where a pause decides, Learned where an announced limit does.
	Pause, Learned bool
	// Name is the server's name for the announced limit.
	Name string
	// Err is why an OpForecast has no result: a row that the request needs cannot be
	// read. The other fields have no meaning then.
	Err error
}

// A RowError is a row that could not be read.
type RowError struct {
	// Group and Name identify the row.
	Group, Name string
	// Anew is set where the row was set aside, and the name has begun anew.
	Anew bool
	// Err is the reason: ErrDamaged, ErrNewer, or what the store reports of this row alone.
	Err error
}

// Error names the row and the reason.
func (e *RowError) Error() string {
	if e.Anew {
		return fmt.Sprintf("%v (%s of %s, which begins anew)", e.Err, e.Name, e.Group)
	}
	return fmt.Sprintf("%v (%s of %s)", e.Err, e.Name, e.Group)
}

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// A Result is the outcome of one operation.
type Result struct {
	// OK is set where an OpTake has taken its needs.
	OK bool
	// Skipped is set where an OpTake was not decided; see Op.Line.
	Skipped bool
	// Strict is set where units that were taken wait for OpDone.
	Strict bool
	// UnderPause is set where a pause applied once, so that the success of the request
	// counts; see OpSuccess.
	UnderPause bool
	// Reserved is how many further starts an OpTake has reserved; see Op.Reserve.
	Reserved int64
	// Marks are those of the announced limits that an OpTake has taken from, before it
	// reserved more.
	Marks []Mark
	// At is when it took place.
	At Instant
	// Wait is when a refused OpTake could start.
	Wait
	// Remaining is what is left under each need after an OpTake, OpSpend or OpRead:
	// negative in debt, math.MaxInt64 where nothing is limited.
	Remaining []int64
	// LimitRemaining is Remaining by Need.Limit alone, without what servers have announced
	// of the budget; nil where it is the same, since nothing is announced of any of them.
	LimitRemaining []int64
	// Waits are those of OpForecast.
	Waits []Wait
	// Paused is for how long the requests concerned do not start, where an OpPause has
	// made that longer; else zero.
	Paused time.Duration
	// Announced is what applies: for OpRead, to Audiences and Needs; for a refused
	// OpTake, the pause or limit that decides, if one does; for OpPause and OpLearn,
	// the outcome.
	Announced []Announced
	// Err, if not nil, is a *RowError: the operation needs a row that cannot be read and
	// stays as it is. It had no effect, and of the other fields only At counts.
	Err error
	// Anew are the rows of the operation that could not be read and have begun anew.
	Anew []*RowError
	// Back, if not zero, reports that the store's clock has been set back, by that much
	// at least and by a second or more: a row of the operation was ahead of it. What the
	// row has of later than now counts from now on, and returns one period from now.
	Back time.Duration
}

// An Announced is a pause that applies, or an announced limit.
type Announced struct {
	// Audience is whom it was announced to, or the budget that it is about; Only is the
	// budget that a pause is restricted to.
	Audience, Only string
	// Source is the dialect that it was announced in.
	Source string
	// Pause is the time until its end; zero for a limit.
	Pause time.Duration
	// Name and Window are Learn's.
	Name string
	// Window is the limit's period where the server gives it, else zero.
	Window time.Duration
	// Left is what is left now.
	Left int64
	// Limit is how many units there are in a window; negative where the server did not
	// say.
	Limit int64
	// Reset is the time until units return; negative where the server did not say.
	Reset time.Duration
	// Age is the time since the response.
	Age time.Duration
}
