package sqlite_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/sqlite"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Each request is one run of the program, which opens and closes the file. Quotas per day
// in a time zone, and the least time between two runs, hold across all runs.
func TestC22_OverRestarts(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	const hour = time.Hour
	for name, tc := range map[string]struct {
		limit  limiter.Limit
		starts []time.Duration // when a run sends, since midnight of 1 January 2000 in UTC
		waits  map[time.Duration]time.Duration
	}{
		"calendar": {
			limiter.Limit{N: 2, Law: limiter.Calendar, Unit: limiter.Day, Location: vienna},
			[]time.Duration{12 * hour, 23 * hour, 24 * hour},
			map[time.Duration]time.Duration{14 * hour: 9 * hour, 23*hour - 1: 1, 25 * hour: 22 * hour},
		},
		"hourly": {limiter.Every(hour), []time.Duration{0, hour, 3 * hour}, map[time.Duration]time.Duration{1: hour - 1, hour + 1: hour - 1}},
		"weekly": {limiter.Every(168 * hour), []time.Duration{0, 168 * hour}, map[time.Duration]time.Duration{100 * hour: 68 * hour}},
		"window": {limiter.PerDay(2), []time.Duration{0, hour, 24 * hour}, map[time.Duration]time.Duration{2 * hour: 22 * hour, 24*hour + 1: hour - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "budgets.db")
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now() // midnight of 1 January 2000, in UTC
				var last time.Duration
				for at := time.Duration(0); at <= 170*hour; at = next(at, tc.starts, tc.waits) {
					time.Sleep(at - last)
					last = at
					err := once(t, file, tc.limit)
					var e *headway.ThrottledError
					switch wait, refused := tc.waits[time.Since(begin)]; {
					case refused && (!errors.As(err, &e) || e.RetryAfter != wait):
						t.Errorf("at %v: got %v, want it refused for %v", at, err, wait)
					case !refused && err != nil:
						t.Errorf("at %v: got %v, want it sent", at, err)
					}
				}
			})
		})
	}
}

// next returns the first instant of the test after at.
func next(at time.Duration, starts []time.Duration, waits map[time.Duration]time.Duration) time.Duration {
	first := time.Duration(1<<63 - 1)
	for _, s := range starts {
		if s > at {
			first = min(first, s)
		}
	}
	for w := range waits {
		if w > at {
			first = min(first, w)
		}
	}
	return first
}

// once runs a program that sends one request.
func once(t *testing.T, file string, limit limiter.Limit) error {
	t.Helper()
	budgets, err := sqlite.Open(sqlite.Config{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	defer budgets.Close()
	tr, err := headway.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}), headway.Config{Store: budgets, Secret: []byte("s"), Policies: []headway.Policy{{
		Hosts: []string{"*"}, Limits: []limiter.Limit{limit}, MaxWait: headway.NoWait,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("GET", "https://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.RoundTrip(req)
	return err
}
