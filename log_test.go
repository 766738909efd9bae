package headway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// logTo returns an observer that logs what is at least level as text without
// times, and the text.
func logTo(level slog.Level) (headway.Observer, *bytes.Buffer) {
	var text bytes.Buffer
	h := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return headway.LogObserver(slog.New(h), 2*time.Second), &text
}

// story lets two tenants meet their limits, a pause and a refusal.
func story(s *scene) {
	s.base.answer = func(req *http.Request) (*http.Response, error) {
		resp := ok(req)
		if req.Header.Get("Name") == "b" {
			resp.StatusCode = 429
			resp.Header.Set("Retry-After", "3")
		}
		return resp, nil
	}
	s.send("a", ask{})
	s.send("b", ask{}) // waits 1 s
	s.until(time.Second)
	s.send("c", ask{}) // waits 3 s, for the pause
	s.send("d", ask{call: headway.Call{MaxWait: headway.NoWait}})
	s.until(10 * time.Second)
	quota, err := s.Quota("api.test", "1/1s", "")
	if err != nil {
		s.Fatal(err)
	}
	spend(s, quota, -1)
}

// Production logs refusals and pauses as warnings, and what waited long.
func TestLogObserver(t *testing.T) {
	const info = `level=WARN msg="headway: pause" policy=* host=api.test pause=3s status=429 dialect=rfc9110
level=WARN msg="headway: refused" policy=* host=api.test rule=1/1s reason=limit retry_after=4s
level=INFO msg="headway: start" policy=* host=api.test rule=1/1s cost=1 remaining=0 wait=3s
`
	const debug = `level=DEBUG msg="headway: start" policy=* host=api.test rule=1/1s cost=1 remaining=0
level=DEBUG msg="headway: start" policy=* host=api.test rule=1/1s cost=1 remaining=0 wait=1s
` + info + `level=DEBUG msg="headway: spend" policy=* host=api.test rule=1/1s cost=-1 remaining=1
`
	warn := info[:strings.Index(info, "level=INFO")]
	for level, want := range map[slog.Level]string{slog.LevelWarn: warn, slog.LevelInfo: info, slog.LevelDebug: debug} {
		observer, text := logTo(level)
		playConfig(t, headway.Config{Observer: observer, Policies: limits(limiter.PerSecond(1))}, story)
		if got := text.String(); got != want {
			t.Errorf("%v: got\n%s\nwant\n%s", level, got, want)
		}
	}
}

// Every kind of event is logged with what it says, and nothing else.
func TestLogObserverLogsTheFieldsOfEvents(t *testing.T) {
	event := func(kind headway.EventKind) headway.Event {
		return headway.Event{Kind: kind, Policy: "p", Host: "h", Reset: -1}
	}
	for want, set := range map[string]struct {
		kind headway.EventKind
		more func(e *headway.Event)
	}{
		`WARN msg="headway: refused" policy=p host=h rule=r key_digest=d attempt=2 reason=in_flight at_least=true`: {headway.EventRefused, func(e *headway.Event) {
			e.Rule, e.KeyDigest, e.Attempt, e.Reason, e.RetryAfter, e.AtLeast = "r", "d", 2, limiter.ReasonInFlight, limiter.Never, true
		}},
		`WARN msg="headway: no_key" policy=p host=h rule=r`:                                   {headway.EventNoKey, func(e *headway.Event) { e.Rule = "r" }},
		`INFO msg="headway: canceled" policy=p host=h wait=2s`:                                {headway.EventCanceled, func(e *headway.Event) { e.Wait = 2 * time.Second }},
		`DEBUG msg="headway: canceled" policy=p host=h wait=1.999s`:                           {headway.EventCanceled, func(e *headway.Event) { e.Wait = 1999 * time.Millisecond }},
		`DEBUG msg="headway: take" policy=p host=h rule=r cost=2 remaining=-1`:                {headway.EventTake, func(e *headway.Event) { e.Rule, e.Cost, e.Remaining = "r", 2, -1 }},
		`DEBUG msg="headway: start" policy=p host=h`:                                          {headway.EventStart, func(*headway.Event) {}},
		`DEBUG msg="headway: learned" policy=p host=h remaining=0`:                            {headway.EventLearned, func(*headway.Event) {}},
		`DEBUG msg="headway: learned" policy=p host=h limit=9 remaining=3 reset=1s drift=2`:   {headway.EventLearned, func(e *headway.Event) { e.Limit, e.Remaining, e.Reset, e.Drift = 9, 3, time.Second, 2 }},
		`DEBUG msg="headway: malformed" policy=p host=h header=X-Y status=200 dialect=vendor`: {headway.EventMalformed, func(e *headway.Event) { e.Header, e.Status, e.Dialect = "X-Y", 200, "vendor" }},
		`DEBUG msg="headway: overflow" policy=p host=h`:                                       {headway.EventOverflow, func(*headway.Event) {}},
		`WARN msg="headway: pause" policy=p host=h pause=1m0s cut=true`:                       {headway.EventPause, func(e *headway.Event) { e.Pause, e.Cut = time.Minute, true }},
		`DEBUG msg="headway: start" policy=p host=h away=true`:                                {headway.EventStart, func(e *headway.Event) { e.Away = true }},
		`WARN msg="headway: refused" policy=p host=h reason=store retry_after=5s at_least=true away=true`: {headway.EventRefused, func(e *headway.Event) {
			e.Reason, e.RetryAfter, e.AtLeast, e.Away = limiter.ReasonStore, 5*time.Second, true, true
		}},
	} {
		observer, text := logTo(slog.LevelDebug)
		e := event(set.kind)
		set.more(&e)
		if observer.Observe(t.Context(), e); text.String() != "level="+want+"\n" {
			t.Errorf("got  %swant level=%s", text, want)
		}
	}
}

func TestLogObserverDefaults(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	observer := headway.LogObserver(nil, 0)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	for _, wait := range []time.Duration{999 * time.Millisecond, time.Second} {
		observer.Observe(t.Context(), headway.Event{Kind: headway.EventStart, Wait: wait})
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "wait=1s") {
		t.Errorf("got %q, want one line, of the wait of 1s", got)
	}
}

// A level that is off costs no memory.
func TestAllocLogObserver(t *testing.T) {
	if headway.RaceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	observer := headway.LogObserver(slog.New(slog.DiscardHandler), 0)
	warns := headway.LogObserver(slog.New(slog.NewTextHandler(new(bytes.Buffer), &slog.HandlerOptions{Level: slog.LevelWarn})), 0)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		observer.Observe(ctx, headway.Event{Kind: headway.EventRefused, Policy: "p"})
		warns.Observe(ctx, headway.Event{Kind: headway.EventStart, Policy: "p", Wait: time.Hour})
	}); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// A store that goes away is a warning, and that it is back is no news for
// debugging only. Neither is about one policy and host.
func TestC87_LogOfAStore(t *testing.T) {
	const want = `level=WARN msg="headway: store_down" error=gone
level=WARN msg="headway: refused" policy=* host=api.test reason=store retry_after=100ms at_least=true away=true
level=INFO msg="headway: store_up"
`
	disk := &shaky{}
	observer, text := logTo(slog.LevelInfo)
	p := limits(limiter.PerSecond(9))
	p[0].Store.Down = headway.StoreDownRefuse
	cfg := overStore(disk, nil, p)
	cfg.Observer = observer
	playConfig(t, cfg, func(s *scene) {
		disk.set(func(d *shaky) { d.err = errGone })
		s.send("A", ask{})
		disk.set(func(d *shaky) { d.err = nil })
		s.until(time.Second)
		s.Delay(ask{}.request("B")) // finds out that it is back
		s.until(2 * time.Second)
		s.send("C", ask{})
		if got := text.String(); got != want {
			s.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
