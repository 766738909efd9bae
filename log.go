package headway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/merge"
	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/limiter"
)

// mergeFor is how long refusals alike are counted before their number is logged.
const mergeFor = 10 * time.Second

// LogObserver returns an Observer that logs every event to l; if l is nil, to what
// slog.Default returns at the time of the event. The levels are
//
//	slog.LevelWarn    refusals, requests without a key, pauses, breakers that open, a
//	                  store that is down, a row of it that cannot be read, and its
//	                  clock when it has been set back
//	slog.LevelInfo    starts and cancels after a wait of slow or longer, and a store
//	                  that is back
//	slog.LevelDebug   all other events
//
// A slow of zero means 1 s. Decisions without the store have away=true.
//
// Refusals and requests without a key that are Alike are merged for 10 s: the first is
// logged immediately, and the others as one line with their count and the fields of
// the last of them. That line comes with the first event of any kind after the 10 s;
// the Observer has no timer and no goroutine, so that the last count may never be
// logged. When more than 32 kinds of them come within 10 s, by host or key, further
// ones are merged by policy, rule and reason only; and when there are more than 32 of
// these, by reason only.
func LogObserver(l *slog.Logger, slow time.Duration) Observer {
	return &logger{to: l, slow: cmp.Or(slow, time.Second)}
}

type logger struct {
	to   *slog.Logger // nil: slog.Default()
	slow time.Duration

	due atomic.Int64 // when counts are to be logged, as UnixNano; zero: there are none

	mu sync.Mutex // guards following fields
	// Entries count the events since their last line; First is when that was logged.
	each, coarse, kinds merge.Ring[Event]
}

func (l *logger) level(e *Event) slog.Level {
	switch {
	case e.Kind == EventRefused, e.Kind == EventNoKey, e.Kind == EventPause, e.Kind == EventOpenRefused, e.Kind == EventOpen, e.Kind == EventStoreDown, e.Kind == EventStoreRow, e.Kind == EventStoreClock:
		return slog.LevelWarn
	case e.Wait >= l.slow, e.Kind == EventStoreUp:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (l *logger) Observe(ctx context.Context, e Event) {
	to, level := l.to, l.level(&e)
	if to == nil {
		to = slog.Default()
	}
	if due := l.due.Load(); due != 0 && time.Now().UnixNano() >= due {
		l.flush(to)
	}
	if !to.Enabled(ctx, level) { // the rest allocates
		return
	}
	switch e.Kind {
	case EventRefused, EventOpenRefused, EventNoKey:
		e, first := l.first(e)
		if first {
			l.write(ctx, to, level, &e, 1)
		}
		return
	}
	l.write(ctx, to, level, &e, 1)
}

func (l *logger) write(ctx context.Context, to *slog.Logger, level slog.Level, e *Event, count int) {
	list := e.attrs()
	if count > 1 {
		list = append(list, slog.Int("count", count))
	}
	to.LogAttrs(ctx, level, "headway: "+e.Kind.String(), list...)
}

// first reports whether e is the first of its kind within mergeFor, and how it is to
// be logged; if it is not, it is counted.
func (l *logger) first(e Event) (Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	ring := &l.each
	full := func() bool {
		o := ring.Oldest()
		return o != nil && now.Sub(o.First) < mergeFor && ring.Find(e, (*Event).Alike) == nil
	}
	if full() {
		ring = &l.coarse
		e.Host, e.KeyDigest, e.Status, e.Dialect, e.Resource = "", "", 0, "", ""
	}
	if full() { // names of rules may be a server's
		ring = &l.kinds
		e.Policy, e.Rule = "", ""
	}
	if entry := ring.Find(e, (*Event).Alike); entry != nil && now.Sub(entry.First) < mergeFor {
		entry.Event, entry.Last = e, now
		entry.Count++
		if at := entry.First.Add(mergeFor).UnixNano(); l.due.Load() == 0 || at < l.due.Load() {
			l.due.Store(at)
		}
		return e, false
	}
	entry := ring.Put(e, now, (*Event).Alike)
	entry.First = now
	return e, true
}

// flush logs the counts that are due, without the context of a request.
func (l *logger) flush(to *slog.Logger) {
	for _, h := range l.takeDue() {
		ctx := context.Background()
		if level := l.level(&h.Event); to.Enabled(ctx, level) {
			l.write(ctx, to, level, &h.Event, h.Count)
		}
	}
}

func (l *logger) takeDue() (list []merge.Entry[Event]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, next := time.Now(), int64(0)
	for _, ring := range []*merge.Ring[Event]{&l.each, &l.coarse, &l.kinds} {
		for h := range ring.All() {
			at := h.First.Add(mergeFor)
			switch {
			case h.Count == 0:
			case !at.After(now):
				list = append(list, *h)
				h.First, h.Count = now, 0
			case next == 0 || at.UnixNano() < next:
				next = at.UnixNano()
			}
		}
	}
	l.due.Store(next)
	slices.Reverse(list)
	return list
}

// attrs returns the fields of e that its kind sets.
func (e *Event) attrs() []slog.Attr {
	list := make([]slog.Attr, 0, 16)
	add := func(says bool, a slog.Attr) {
		if says {
			list = append(list, a)
		}
	}
	if e.Kind != EventStoreDown && e.Kind != EventStoreUp && e.Kind != EventStoreClock { // they are about all of them
		list = append(list, slog.String("policy", e.Policy), slog.String("host", e.Host))
	}
	add(e.Rule != "", slog.String("rule", e.Rule))
	add(e.KeyDigest != "", slog.String("key_digest", e.KeyDigest))
	add(e.Resource != "", slog.String("resource", show.Text(e.Resource)))
	add(e.Attempt > 0, slog.Int("attempt", e.Attempt))
	switch e.Kind {
	case EventStart, EventTake, EventSpend, EventSettle:
		add(e.Rule != "", slog.Int64("cost", e.Cost))
		add(e.Rule != "", slog.Int64("remaining", e.Remaining))
	case EventRefused:
		list = append(list, slog.String("reason", e.Reason.String()))
		add(e.RetryAfter != limiter.Never, slog.Duration("retry_after", show.Duration(e.RetryAfter)))
		add(e.AtLeast, slog.Bool("at_least", true))
	case EventOpenRefused:
		list = append(list, slog.Duration("retry_after", show.Duration(e.RetryAfter)))
	case EventPause:
		list = append(list, slog.Duration("pause", show.Duration(e.Pause)))
	case EventLearned:
		add(e.Limit > 0, slog.Int64("limit", e.Limit))
		list = append(list, slog.Int64("remaining", e.Remaining))
		add(e.Reset >= 0, slog.Duration("reset", show.Duration(e.Reset)))
		add(e.Drift != 0, slog.Int64("drift", e.Drift))
	case EventMalformed:
		list = append(list, slog.String("header", e.Header))
	}
	if e.Err != nil {
		list = append(list, slog.String("error", show.Text(e.Err.Error())))
	}
	add(e.Wait > 0, slog.Duration("wait", show.Duration(e.Wait)))
	add(e.Away, slog.Bool("away", true))
	add(e.Cut, slog.Bool("cut", true))
	add(e.Status > 0, slog.Int("status", e.Status))
	add(e.Dialect != "", slog.String("dialect", e.Dialect))
	return list
}
