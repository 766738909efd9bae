package headway

import (
	"context"
	"time"

	"github.com/headway-go/headway/limiter"
)

// An Observer receives every decision.
//
// Observe is called in the goroutine that caused the event, which waits for it to
// return, and concurrently from other goroutines. The context is that of the request,
// or context.Background where there is none. Observe may call any function of this
// module and send requests: no lock is held, requests that start at the same instant
// do not wait for it, and all that a response changes for other requests has taken
// effect. Meanwhile the request of that goroutine keeps what it has taken: its units,
// its slot of MaxInFlight until the body is closed, and its place as a probe. A panic
// in Observe affects that request only.
type Observer interface {
	// Observe receives one event. It must return soon: the request waits.
	Observe(context.Context, Event)
}

// A TransportObserver is an Observer that also receives the Transports which report
// to it. It is for what no event contains, such as the number of requests that wait
// now; Transport.Snapshot returns that. It should keep only weak pointers, so that an
// unused Transport can be collected.
type TransportObserver interface {
	Observer
	// Watch is called by NewTransport, once for each Transport.
	Watch(*Transport)
}

// An ObserverFunc is a function that is an Observer.
type ObserverFunc func(context.Context, Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An EventKind is the kind of decision that an event reports.
type EventKind uint8

const (
	// EventStart: a request was granted and is about to be sent.
	EventStart EventKind = iota + 1
	// EventRefused: a request was refused, because it cannot start in time.
	EventRefused
	// EventCanceled: a request's context ended while it waited.
	EventCanceled
	// EventSpend: budget was used or returned outside the Transport.
	EventSpend
	// EventPause: a response requested a pause that is longer than the known one, by at
	// least 1 s and 5 % of it. Requests that are in flight together are refused within
	// moments, with almost the same pause; the pause in force is exact all the same. Over
	// a Config.Store the known one is what this process knows. If other processes have made
	// the pause longer, the next request reports that too.
	EventPause
	// EventLearned: a response announced what is left of a limit.
	EventLearned
	// EventMalformed: a header of a response was malformed and ignored.
	EventMalformed
	// EventOverflow: Config.MaxHosts are remembered and none can be forgotten. A new
	// host or key shares an overflow entry, or a server has announced something for the
	// first time to the requests that share one.
	EventOverflow
	// EventOpenRefused: a request was refused, because the breaker of its host is open,
	// or half-open without room for it.
	EventOpenRefused
	// EventOpen: the breaker of a host has opened. The requests in line are refused.
	EventOpen
	// EventHalfOpen: the breaker of a host lets probes through.
	EventHalfOpen
	// EventClosed: the breaker of a host has closed.
	EventClosed
	// EventTake: a request that is about to be sent took units under a rule that its
	// EventStart does not name. It comes before the EventStart.
	EventTake
	// EventNoKey: a rule's Key or Cost could not be determined, and the request failed
	// with a *KeyError.
	EventNoKey
	// EventSettle: the cost of a request under a rule was corrected.
	EventSettle
	// EventStoreDown: the store is down. Until EventStoreUp each policy's Store.Down
	// decides. Err is the reason. Policy and Host are empty; the request that found out
	// reports it.
	EventStoreDown
	// EventStoreUp: the store is back. The next request reports it.
	EventStoreUp
	// EventStoreRow: a row of the store cannot be read: the budget of Rule and
	// KeyDigest, or without a Rule the row of pauses and announced limits. Err is a
	// *store.RowError. A damaged row starts afresh. With Away, the row was written by a
	// newer version and stays, and Store.Down decides for the requests that need it. A
	// row that stays is reported once until it can be read again.
	EventStoreRow
	// EventStoreClock: the store's clock has been set back; Err has by how much. Units
	// that were used later than the present time count from now on, so that their budget
	// has room again one period later. It is reported once a minute at most. A clock that
	// is set forward is not noticed: units that were used no longer count.
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

// Alike reports whether two events have the same cause: they differ in times, counts
// and attempts at most. LogObserver and package debug use it to merge refusals.
func (e *Event) Alike(o *Event) bool {
	return e.Kind == o.Kind && e.Reason == o.Reason && e.Rule == o.Rule && e.KeyDigest == o.KeyDigest &&
		e.Host == o.Host && e.Policy == o.Policy && e.Status == o.Status && e.Dialect == o.Dialect && e.Resource == o.Resource && e.Away == o.Away
}

// An Event is one decision. Which fields are set depends on its kind.
type Event struct {
	// Kind is what was decided.
	Kind EventKind
	// Policy and Host name the line.
	Policy, Host string
	// Rule is the name of the rule, or the text of the limit; empty without one. Of
	// several rules, a start names the one with the fewest units left, and a refusal
	// the one that delays the request the longest.
	Rule string
	// KeyDigest is the keyed digest of the key whose budget it is; empty when the rule
	// has no key.
	KeyDigest string
	// Attempt is which attempt of its call the request is: see AttemptFrom.
	Attempt int
	// Cost is the units that were taken, or would have been; negative when a spend
	// returned units. For EventSettle it is the difference from the cost before.
	Cost int64
	// Remaining is the units that the rule has left afterwards, negative in debt. For
	// EventLearned it is the units that the server announced as left.
	Remaining int64
	// Wait is the time that the request waited in line until it started, was refused
	// or gave up.
	Wait time.Duration
	// Reason is why a request was refused.
	Reason limiter.Reason
	// RetryAfter is the time until a refused request could have started;
	// limiter.Never when it never can. For a breaker it is the time until the host may
	// be probed.
	RetryAfter time.Duration
	// AtLeast is true when RetryAfter is a lower bound.
	AtLeast bool
	// Status is the status of the response that caused the event; zero for none.
	Status int
	// Dialect is the dialect of that response.
	Dialect string
	// Resource is the server's name for the resource, bucket or endpoint that the
	// announced limit or pause is of; empty where it is not of one, or belongs to a rule.
	Resource string
	// Pause is the time from now in which no request that the pause concerns starts.
	Pause time.Duration
	// Cut is true when the server asked for more than the policy's Server.MaxPause.
	Cut bool
	// Limit is the most units per window that the server announced; zero where it
	// announced none.
	Limit int64
	// Reset is the time until units are restored; negative where the server did not
	// announce it.
	Reset time.Duration
	// Drift is how many units others have spent since the last response, as far as the
	// announced remainder shows it.
	Drift int64
	// Header is the name of the malformed header.
	Header string
	// Away is true when Config.Store was down, so that the policy's Store.Down decided.
	// The store does not count the starts that have it.
	Away bool
	// Err is the failure that opened the breaker, nil where none was given; or why the
	// store is down.
	Err error
}

// MultiObserver returns an Observer that passes each event to every observer of the
// list in turn, and each Transport to the TransportObservers among them. It skips nil
// observers, and returns nil if no other is left. When one panics, those after it do
// not receive that event.
func MultiObserver(list ...Observer) Observer {
	var all joined
	for _, o := range list {
		if o != nil {
			all = append(all, o)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type joined []Observer

func (j joined) Observe(ctx context.Context, e Event) {
	for _, o := range j {
		o.Observe(ctx, e)
	}
}

func (j joined) Watch(t *Transport) {
	for _, o := range j {
		if w, ok := o.(TransportObserver); ok {
			w.Watch(t)
		}
	}
}
