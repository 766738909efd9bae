package headway

import (
	"context"
	"log/slog"
	"time"

	"github.com/headway-go/headway/limiter"
)

// LogObserver returns an Observer that logs every event to l, or to
// slog.Default() at the time where l is nil. Refusals, requests without a key,
// pauses, breakers that open, a store that goes away and a row of it that cannot be
// read are warnings; starts and
// cancels after a wait of slow or longer, and a store that is back, are
// slog.LevelInfo; and the rest is slog.LevelDebug. A slow of zero means 1 s. What
// was decided without the store has away=true.
func LogObserver(l *slog.Logger, slow time.Duration) Observer {
	if slow == 0 {
		slow = time.Second
	}
	return &logger{l, slow}
}

type logger struct {
	to   *slog.Logger // nil: slog.Default()
	slow time.Duration
}

func (l *logger) level(e *Event) slog.Level {
	switch {
	case e.Kind == EventRefused, e.Kind == EventNoKey, e.Kind == EventPause, e.Kind == EventOpenRefused, e.Kind == EventOpen, e.Kind == EventStoreDown, e.Kind == EventStoreRow:
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
	if to.Enabled(ctx, level) { // what comes after it allocates
		to.LogAttrs(ctx, level, "headway: "+e.Kind.String(), e.attrs()...)
	}
}

// attrs returns the fields of e that say something.
func (e *Event) attrs() []slog.Attr {
	list := make([]slog.Attr, 0, 16)
	add := func(says bool, a slog.Attr) {
		if says {
			list = append(list, a)
		}
	}
	if e.Kind != EventStoreDown && e.Kind != EventStoreUp { // they are about all of them
		list = append(list, slog.String("policy", e.Policy), slog.String("host", e.Host))
	}
	add(e.Rule != "", slog.String("rule", e.Rule))
	add(e.KeyDigest != "", slog.String("key_digest", e.KeyDigest))
	add(e.Attempt > 0, slog.Int("attempt", e.Attempt))
	switch e.Kind {
	case EventStart, EventTake, EventSpend, EventSettle:
		add(e.Rule != "", slog.Int64("cost", e.Cost))
		add(e.Rule != "", slog.Int64("remaining", e.Remaining))
	case EventRefused:
		list = append(list, slog.String("reason", e.Reason.String()))
		add(e.RetryAfter != limiter.Never, slog.Duration("retry_after", e.RetryAfter))
		add(e.AtLeast, slog.Bool("at_least", true))
	case EventOpenRefused:
		list = append(list, slog.Duration("retry_after", e.RetryAfter))
	case EventPause:
		list = append(list, slog.Duration("pause", e.Pause))
	case EventLearned:
		add(e.Limit > 0, slog.Int64("limit", e.Limit))
		list = append(list, slog.Int64("remaining", e.Remaining))
		add(e.Reset >= 0, slog.Duration("reset", e.Reset))
		add(e.Drift != 0, slog.Int64("drift", e.Drift))
	case EventMalformed:
		list = append(list, slog.String("header", e.Header))
	}
	if e.Err != nil {
		list = append(list, slog.String("error", e.Err.Error()))
	}
	add(e.Wait > 0, slog.Duration("wait", e.Wait))
	add(e.Away, slog.Bool("away", true))
	add(e.Cut, slog.Bool("cut", true))
	add(e.Status > 0, slog.Int("status", e.Status))
	add(e.Dialect != "", slog.String("dialect", e.Dialect))
	return list
}
