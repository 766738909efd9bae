package retryafter_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/headway-go/headway/retryafter"
)

var exampleNow = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func ExampleParse() {
	for _, value := range []string{"120", "Sat, 14 Mar 2026 15:10:56 GMT", "1.5"} {
		d, ok := retryafter.Parse(value, exampleNow)
		fmt.Println(d, ok)
	}
	// Output:
	// 2m0s true
	// 1m30s true
	// 0s false
}

func ExampleRead() {
	h := http.Header{}
	h.Set("RateLimit-Policy", `"burst";q=10;w=1, "daily";q=1000;w=86400`)
	h.Set("RateLimit", `"burst";r=7;t=1, "daily";r=0;t=7200`)
	s := retryafter.Read(http.StatusTooManyRequests, h, exampleNow)
	if s.HasRetryAfter {
		fmt.Println("stay away for", s.RetryAfter)
	}
	// Output:
	// stay away for 2h0m0s
}

func ExampleSignal_Limits() {
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", "3000")
	h.Set("x-ratelimit-remaining-requests", "2999")
	h.Set("x-ratelimit-reset-requests", "20ms")
	h.Set("x-ratelimit-limit-tokens", "250000")
	h.Set("x-ratelimit-remaining-tokens", "0")
	h.Set("x-ratelimit-reset-tokens", "6m0s")
	s := retryafter.Read(http.StatusOK, h, exampleNow)
	for _, l := range s.Limits() {
		fmt.Println(l.Name, l.Remaining, "of", l.Limit, "for", l.Reset)
	}
	// Output:
	// requests 2999 of 3000 for 20ms
	// tokens 0 of 250000 for 6m0s
}

func ExampleSignal_Binding() {
	h := http.Header{}
	h.Set("X-RateLimit-Limit-Minute", "100")
	h.Set("X-RateLimit-Remaining-Minute", "95")
	h.Set("X-RateLimit-Limit-Hour", "5000")
	h.Set("X-RateLimit-Remaining-Hour", "12")
	s := retryafter.Read(http.StatusOK, h, exampleNow)
	if l, ok := s.Binding(); ok {
		fmt.Println(l.Remaining, "left this", l.Name)
	}
	// Output:
	// 12 left this hour
}

func ExampleNewReader() {
	// Prisjakt sends milliseconds where others send an epoch.
	h := http.Header{}
	h.Set("X-Rate-Limit-Remaining", "0")
	h.Set("X-Rate-Limit-Reset", "600000")
	r := retryafter.NewReader([]retryafter.Dialect{retryafter.Prisjakt}, "")
	s := r.Read(http.StatusTooManyRequests, h, exampleNow)
	fmt.Println(s.RetryAfter)
	// Output:
	// 10m0s
}

func ExampleReader_ReadBody() {
	// Thousands are left, and yet GitHub refuses: only the body says why.
	h := http.Header{}
	h.Set("X-RateLimit-Remaining", "4114")
	h.Set("Content-Type", "application/json; charset=utf-8")
	body := `{"message": "You have exceeded a secondary rate limit. Please wait a few minutes`
	r := retryafter.NewReader(nil, "api.github.com")
	s, _ := r.ReadBody(http.StatusForbidden, h, []byte(body), exampleNow)
	fmt.Println(s.Throttled, s.RetryAfter, s.Documented)
	// Output:
	// true 1m0s true
}

func ExampleDialects() {
	for _, d := range retryafter.Dialects() {
		if d.Name() == "mailgun" {
			fmt.Println("found", d.Name())
		}
	}
	// Output:
	// found mailgun
}

// seconds is the dialect of a service that has a header of its own.
type seconds struct{}

func (seconds) Name() string { return "seconds" }

func (seconds) Read(status int, h http.Header, now time.Time) (s retryafter.Signal, ok bool) {
	v := h.Get("X-Come-Back-In")
	if v == "" {
		return s, false
	}
	s.RetryAfter, s.HasRetryAfter = retryafter.Parse(v, now)
	return s, true
}

func ExampleDialect() {
	h := http.Header{}
	h.Set("X-Come-Back-In", "9")
	r := retryafter.NewReader(append(retryafter.Dialects(), seconds{}), "")
	s := r.Read(http.StatusTooManyRequests, h, exampleNow)
	fmt.Println(s.RetryAfter)
	// Output:
	// 9s
}

func ExampleSignal_Add() {
	var s retryafter.Signal
	s.Add(retryafter.LimitSignal{Name: "minute", Remaining: 3, HasRemaining: true})
	s.Add(retryafter.LimitSignal{Name: "day", Remaining: 0, HasRemaining: true})
	l, _ := s.Binding()
	fmt.Println(l.Name)
	// Output:
	// day
}
