package headway

import (
	"context"
	"time"

	"github.com/headway-go/headway/limiter"
)

// An Observer is told of every decision.
//
// Observe is called in the goroutine that caused the event, which waits for it to
// return, and at the same time from others. The context is that of the request,
// or context.Background where there is none. It may call anything of this module,
// and send requests: no lock is held, requests that start at the same instant do
// not wait for it, and all that a response changes for others has been done before.
// What the request of that goroutine has taken itself it keeps meanwhile: its units,
// its slot of MaxInFlight until the body is closed, and its place as a probe. A
// panic in it harms that request only.
type Observer interface {
	// Observe is told of one event. It must return soon: the request waits.
	Observe(context.Context, Event)
}

// A TransportObserver is an Observer that is shown every Transport that it is the observer
// of, by NewTransport. It is for what no event tells, such as how many wait now:
// Transport.Snapshot does. It should keep no more than a weak pointer, so that a
// Transport that is out of use can be garbage.
type TransportObserver interface {
	Observer
	// Watch is shown a Transport, once.
	Watch(*Transport)
}

// An ObserverFunc is a function that is an Observer.
type ObserverFunc func(context.Context, Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An EventKind says what an event tells of.
type EventKind uint8

const (
	// EventStart: a request was granted and is about to be sent.
	EventStart EventKind = iota + 1
	// EventRefused: a request was told that it cannot start in time.
	EventRefused
	// EventCanceled: a request gave up while it waited, as its context ended.
	EventCanceled
	// EventSpend: budget was used or given back outside the transport.
	EventSpend
	// EventPause: an answer asked us not to come back for a while, and that is
	// longer than was known: by 1 s, and by 5 % of it, at least, since what was in
	// flight together is refused within moments. The pause itself is exact.
	EventPause
	// EventLearned: an answer said what is left of a limit.
	EventLearned
	// EventMalformed: a header of an answer was malformed and ignored.
	EventMalformed
	// EventOverflow: Config.MaxHosts are remembered and none can be forgotten; a
	// new host or key shares its policy's overflow entry, or a server has begun to
	// say something to those who share it.
	EventOverflow
	// EventOpenRefused: a request was told that the breaker of its host is open,
	// or half-open without room for it.
	EventOpenRefused
	// EventOpen: the breaker of a host has opened. Those in line have been told.
	EventOpen
	// EventHalfOpen: the breaker of a host lets probes through.
	EventHalfOpen
	// EventClosed: the breaker of a host has closed.
	EventClosed
	// EventTake: a request that is about to be sent took units under one more
	// rule than its EventStart names. It comes before that.
	EventTake
	// EventNoKey: a rule could not tell whose budget a request uses, or its cost;
	// it got a *KeyError.
	EventNoKey
	// EventSettle: what a request has cost under a rule was corrected.
	EventSettle
	// EventStoreDown: the store could not be asked; until EventStoreUp each
	// policy's StoreDown decides. Err says why. Policy and Host are empty, and a
	// request that came upon it tells.
	EventStoreDown
	// EventStoreUp: the store answers again. The next request tells.
	EventStoreUp
	// EventStoreRow: the store answers, but a row of it cannot be read: the budget of
	// Rule and KeyDigest, or without a rule what it holds of pauses and announced
	// limits. Err is a *store.RowError. The row was damaged and has begun anew; or,
	// with Away, it was written by a newer version and stays, and Store.Down decides
	// about the requests that need it. A row that stays is reported once until it is
	// read again.
	EventStoreRow
	// EventStoreClock: the store's clock has been set back, and Err says by how much.
	// What the store holds of later than now counts from now on: a budget that was used
	// by the clock of before is free again one period later. It is reported once a minute
	// at most. Setting the clock forward cannot be noticed: what was used counts no more.
	EventStoreClock
)

var eventKinds = [...]string{
	"", "start", "refused", "canceled", "spend", "pause", "learned", "malformed", "overflow",
	"open_refused", "open", "half_open", "closed", "take", "no_key", "settle", "store_down", "store_up", "store_row", "store_clock",
}

// String returns the kind as one lower-case word.
func (k EventKind) String() string {
	if int(k) < len(eventKinds) && k > 0 {
		return eventKinds[k]
	}
	return "unknown"
}

// Alike reports whether two events tell of the same to one who looks for the cause:
// they differ in times, counts and attempts at most. LogObserver and package debug
// merge refusals by it.
func (e *Event) Alike(o *Event) bool {
	return e.Kind == o.Kind && e.Reason == o.Reason && e.Rule == o.Rule && e.KeyDigest == o.KeyDigest &&
		e.Host == o.Host && e.Policy == o.Policy && e.Status == o.Status && e.Dialect == o.Dialect && e.Away == o.Away
}

// An Event is one decision. Which fields are set depends on its kind.
type Event struct {
	// Kind says what it tells of.
	Kind EventKind
	// Policy and Host say whose line it was.
	Policy, Host string
	// Rule is the rule it is about, or the text of the limit. When several apply
	// to a request it is the one with the fewest units left at a start, and the
	// one that held it up the longest at a refusal. Empty when there is none.
	Rule string
	// KeyDigest is the keyed digest of the key whose budget it is; empty when
	// the rule has no key.
	KeyDigest string
	// Attempt says which attempt of its call the request is: see AttemptFrom.
	Attempt int
	// Cost is the units that were taken, or would have been; negative when a
	// spend gave units back. For EventSettle it is how many more than before.
	Cost int64
	// Remaining is the units that the rule has left after it; negative in debt.
	Remaining int64
	// Wait is the time that the request stood in line until it started, was
	// refused or gave up.
	Wait time.Duration
	// Reason says why a request was refused.
	Reason limiter.Reason
	// RetryAfter is the time until a refused request could have started;
	// limiter.Never when it never can. For a breaker it is the time until the
	// host may be probed.
	RetryAfter time.Duration
	// AtLeast says that RetryAfter is a lower bound.
	AtLeast bool
	// Status is the status of the answer that caused the event; zero for none.
	Status int
	// Dialect names the dialect in which the answer spoke.
	Dialect string
	// Pause is for how long nobody of those concerned starts, from now.
	Pause time.Duration
	// Cut says that the server asked for more than the policy's Server.MaxPause.
	Cut bool
	// Limit is the most units per window that the server announces; zero where it
	// does not say. Remaining is what it said is left, and Reset the time until
	// units come back; negative where it does not say.
	Limit int64
	// Reset is the time until units come back; negative where nobody said it.
	Reset time.Duration
	// Drift is how many units others have spent since the last answer, as far as
	// what is left shows it.
	Drift int64
	// Header is the malformed header's name.
	Header string
	// Away says that Config.Store was away, so that the policy's Store.Down decided:
	// of starts, those that the store does not count.
	Away bool
	// Err is the failure that opened the breaker, nil where none was given; or why
	// the store could not be asked.
	Err error
}
