package headway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A base that is an http.Client returns a *url.Error with the URL of its caller. The
// caller gets it as it is; others, the events, the Snapshot and the log get what has
// no secret in it. As in cyanheads/mcp-ts-core 190.
func TestOneCallersURLStaysItsOwn(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	own := fmt.Errorf("base: %w", errors.Join(errReset, &url.Error{Op: "Get", URL: "https://u:s3cret@api.test/p?token=s3cret", Err: reset}))
	for name, disk := range map[string]store.Store{"memory": nil, "store": new(store.Memory)} {
		t.Run(name, func(t *testing.T) {
			var shown bytes.Buffer
			log := slog.New(slog.NewJSONHandler(&shown, &slog.HandlerOptions{Level: slog.LevelDebug}))
			observer := headway.MultiObserver(headway.LogObserver(log, 0), headway.ObserverFunc(func(_ context.Context, e headway.Event) {
				fmt.Fprintf(&shown, "%v %+v %#v\n", e, e, e.Err)
				if u := (*url.Error)(nil); errors.As(e.Err, &u) {
					t.Errorf("%v gives %v away", e.Kind, u)
				}
			}))
			cfg := headway.Config{Policies: broken(breaker.Config{Failures: 1}), Observer: observer, Store: disk, Secret: []byte("s")}
			playConfig(t, cfg, func(s *scene) {
				s.base.answer = func(*http.Request) (*http.Response, error) { return nil, own }
				var trace headway.Trace
				a := s.send("A", ask{ctx: headway.WithTrace(s.Context(), &trace)})
				if a.err != own {
					t.Errorf("A got %v, want its own error", a.err)
				}
				if trace.Requests()[0].Err != own {
					t.Error("the trace of A has another error")
				}
				b := s.send("B", ask{})
				var open *headway.OpenError
				var u *url.Error
				var op *net.OpError
				var timeout net.Error
				if !errors.As(b.err, &open) || errors.As(b.err, &u) || !errors.As(b.err, &op) || !errors.As(b.err, &timeout) || timeout.Timeout() ||
					!errors.Is(b.err, syscall.ECONNRESET) || !errors.Is(b.err, errReset) {
					t.Errorf("B got %v", b.err)
				}
				js, _ := json.Marshal(&trace)
				fmt.Fprintf(&shown, "%v %+v %v %s %s", b.err, s.Snapshot(), s.Snapshot()[0].Breakers[0].Err, &trace, js)
			})
			if text := shown.String(); strings.Contains(text, "s3cret") || !strings.Contains(text, "https://api.test/p") {
				t.Errorf("it shows %s", text)
			}
		})
	}
}

// The error of a store may name its server with the password; as in
// smallstep/certificates 1522.
func TestAStoresPasswordIsNotShown(t *testing.T) {
	disk := &shaky{err: fmt.Errorf("dial redis://user:s3/cret@h.test:6379/0?x=s3cret: %w", syscall.ECONNREFUSED)}
	var shown bytes.Buffer
	p := limits(limiter.PerSecond(9))
	p[0].Store.Down = headway.StoreDownRefuse
	cfg := overStore(disk, nil, p)
	cfg.Observer = headway.ObserverFunc(func(_ context.Context, e headway.Event) { fmt.Fprintln(&shown, e, e.Err) })
	playConfig(t, cfg, func(s *scene) {
		for range 2 {
			err := s.send("A", ask{}).err
			if fmt.Fprintln(&shown, err); !strings.Contains(err.Error(), "dial redis://h.test:6379/0: connection refused") {
				t.Errorf("got %v", err)
			}
			var refused *headway.ThrottledError
			if !errors.As(err, &refused) || !errors.Is(refused.Store, syscall.ECONNREFUSED) {
				t.Errorf("got %v, want the errno within", err)
			}
		}
	})
	if strings.Contains(shown.String(), "cret") {
		t.Errorf("it shows %s", &shown)
	}
}

// rowless is a store none of whose rows can be read.
type rowless struct{ store.Memory }

func (*rowless) Do(_ context.Context, ops []store.Op) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	for i := range results {
		results[i].Err = &store.RowError{Group: ops[i].Group, Err: errors.New("GET redis://user:s3cret@h.test/0?x=s3cret: garbage")}
	}
	return results, nil
}

// Nor is it in the error of a row.
func TestARowsPasswordIsNotShown(t *testing.T) {
	var shown bytes.Buffer
	p := limits(limiter.PerSecond(9))
	p[0].Store.Down = headway.StoreDownRefuse
	cfg := overStore(new(rowless), nil, p)
	cfg.Observer = headway.ObserverFunc(func(_ context.Context, e headway.Event) { fmt.Fprintln(&shown, e, e.Err) })
	playConfig(t, cfg, func(s *scene) {
		err := s.send("A", ask{}).err
		if fmt.Fprintln(&shown, err); err == nil || !strings.Contains(err.Error(), "GET redis://h.test/0: garbage") {
			t.Errorf("got %v", err)
		}
	})
	if strings.Contains(shown.String(), "cret") {
		t.Errorf("it shows %s", &shown)
	}
}

// Times in errors are rounded as in traces.
func TestTimesInErrorsAreRounded(t *testing.T) {
	const d = 10196880596 * time.Nanosecond
	refusal := limiter.Refusal{Reason: limiter.ReasonInFlight, RetryAfter: d, AtLeast: true}
	for _, err := range []error{
		&refusal, &headway.ThrottledError{Refusal: refusal}, &headway.OpenError{RetryAfter: d},
	} {
		if text := err.Error(); !strings.Contains(text, "in 10.197s") {
			t.Errorf("got %s", text)
		}
	}
	observer, text := logTo(slog.LevelDebug)
	for _, e := range []headway.Event{
		{Kind: headway.EventRefused, RetryAfter: d, Wait: d}, {Kind: headway.EventOpenRefused, RetryAfter: d},
		{Kind: headway.EventPause, Pause: d}, {Kind: headway.EventLearned, Reset: d},
	} {
		observer.Observe(t.Context(), e)
	}
	if got := text.String(); strings.Count(got, "=10.197s") != 5 || strings.Contains(got, "6880") {
		t.Errorf("got %s", got)
	}
}

// A storm of refusals is a line within 10 s, with their number; as asked for in
// mholt/caddy-ratelimit 37 and louislam/uptime-kuma 7599.
func TestLogObserverMerges(t *testing.T) {
	observer, text := logTo(slog.LevelInfo)
	playConfig(t, headway.Config{Observer: observer, Policies: limits(limiter.PerMinute(1))}, func(s *scene) {
		s.base.quiet = true
		for range 341 {
			s.send("x", ask{call: headway.Call{MaxWait: headway.NoWait}})
			time.Sleep(35 * time.Millisecond)
		}
		s.until(30 * time.Second)
		s.send("x", ask{url: "https://other.test/"})
		const want = `level=WARN msg="headway: refused" policy=* host=api.test rule=1/1m reason=limit retry_after=59.965s
level=WARN msg="headway: refused" policy=* host=api.test rule=1/1m reason=limit retry_after=49.99s count=285
level=WARN msg="headway: refused" policy=* host=api.test rule=1/1m reason=limit retry_after=48.1s count=54
`
		if got := text.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// However many hosts and keys there are, the lines are few; and so they are where a
// server gives its limit another name each time.
func TestLogObserverIsBounded(t *testing.T) {
	t.Run("rules", func(t *testing.T) {
		observer, text := logTo(slog.LevelInfo)
		playConfig(t, headway.Config{}, func(*scene) {
			for i := range 10_000 {
				observer.Observe(context.Background(), headway.Event{
					Kind: headway.EventRefused, Policy: "p", Host: "h", Rule: fmt.Sprint("learned ", i), Reason: limiter.ReasonLimit,
				})
			}
			time.Sleep(10 * time.Second)
			observer.Observe(context.Background(), headway.Event{Kind: headway.EventStart})
		})
		if lines := strings.Count(text.String(), "\n"); lines != 66 || !strings.Contains(text.String(), "policy=\"\" host=\"\" reason=limit retry_after=0s count=9935") {
			t.Errorf("%d lines, want 64, one for the rest, and their number:\n%s", lines, text)
		}
	})
	observer, text := logTo(slog.LevelInfo)
	playConfig(t, headway.Config{}, func(*scene) {
		for i := range 10_000 {
			observer.Observe(context.Background(), headway.Event{
				Kind: headway.EventRefused, Policy: "p", Host: fmt.Sprint(i), KeyDigest: fmt.Sprint(i), Rule: "r", Reason: limiter.ReasonLimit,
			})
		}
		time.Sleep(10 * time.Second)
		observer.Observe(context.Background(), headway.Event{Kind: headway.EventStart})
	})
	if lines := strings.Count(text.String(), "\n"); lines != 34 || !strings.Contains(text.String(), "policy=p host=\"\" rule=r reason=limit retry_after=0s count=9967") {
		t.Errorf("%d lines, want 32, one for the rest, and their number:\n%s", lines, text)
	}
}

// What was in flight together is refused by one limit within moments: that is one
// pause to report, also over a store. One that is longer by 1 s and 5 % is another.
func TestOneSecondaryLimitIsOneEvent(t *testing.T) {
	var mu sync.Mutex // guards following
	var pauses []time.Duration
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if e.Kind == headway.EventPause {
			mu.Lock()
			defer mu.Unlock()
			pauses = append(pauses, e.Pause)
		}
	})
	playConfig(t, headway.Config{Observer: observer, Policies: limits(limiter.PerSecond(100))}, func(s *scene) {
		var n atomic.Int64
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			d := time.Duration(n.Add(1)) * 20 * time.Millisecond
			time.Sleep(d)
			after := "60"
			if d == 400*time.Millisecond {
				after = "90"
			}
			return says(429, "", "Retry-After: "+after)(req)
		}
		s.sendAll(ask{}, names("x", 20)...)
		s.until(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(pauses); got != "[1m0s 1m30s]" {
			t.Errorf("got %s, want two events", got)
		}
		if left := s.Snapshot()[0].Pauses[0].Left; left != 90*time.Second+400*time.Millisecond-time.Second {
			t.Errorf("the pause has %v left: it is not exact", left)
		}
	})
}

// No form of printing a Transport, its quotas or its breakers shows the secret or a key.
func TestPrintingShowsNoSecret(t *testing.T) {
	const secret, name = "s3cret", "u53r"
	p := rules(keyed(limiter.PerMinute(10)))
	p[0].Breaker = new(breaker.Config)
	playConfig(t, headway.Config{Policies: p, Secret: []byte(secret)}, func(s *scene) {
		s.send("A", key(name))
		for _, v := range []any{s.Transport, &http.Client{Transport: s.Transport}, http.Client{Transport: s.Transport}, s.quota("api.test", "key", name), s.breaker(), s.Snapshot()} {
			for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
				shown := fmt.Sprintf(format, v)
				for _, form := range []string{"%s", "%x", "%d", "%#v"} {
					for _, text := range []string{secret, name} {
						if bytes := strings.Trim(strings.TrimPrefix(fmt.Sprintf(form, []byte(text)), "[]byte"), "[]{}"); strings.Contains(shown, bytes) {
							t.Errorf("%T by %s shows %s", v, format, bytes)
						}
					}
				}
			}
		}
	})
}
