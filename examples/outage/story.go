package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

const (
	perSecond = 30 // requests that callers make
	limit     = 25 // requests per second that the service allows
)

// acts are the modes of the service, and how many seconds each lasts.
var acts = []struct {
	mode    mode
	seconds int
}{{up, 2}, {dead, 3}, {hanging, 3}, {up, 4}}

// A tally counts the results of requests.
type tally struct {
	mu     sync.Mutex // guards following fields
	counts counts
	waited time.Duration // the longest wait of a request that came while the breaker was open
}

type counts struct {
	responses, failed int
	refused           int // by the breaker
}

// runStory makes requests over base to the service at url, and prints the results.
func runStory(base http.RoundTripper, url string, s *service) error {
	transport, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{
		Hosts:          []string{"*"},
		Limits:         []limiter.Limit{{N: limit, Per: time.Second, Law: limiter.Bucket, Burst: 5}},
		AttemptTimeout: 300 * time.Millisecond, // a hang becomes a failure
		Breaker:        &breaker.Config{Failures: 3, OpenFor: 500 * time.Millisecond, MaxOpenFor: time.Second},
	}}})
	if err != nil {
		return err
	}
	host, err := transport.Breaker(url[len("http://"):])
	if err != nil {
		return err
	}
	fmt.Printf("\n  %d requests per second go to a service that allows %d; 3 failures in a row open the breaker:\n\n", perSecond, limit)
	fmt.Printf("    %4s   %-8s %5s %9s %7s %8s %8s   %s\n", "time", "service", "sent", "responses", "failed", "refused", "in line", "breaker")

	var all sync.WaitGroup
	total, before, down, second := new(tally), counts{}, 0, 0
	var errs []error
	for _, act := range acts {
		s.become(act.mode)
		for range act.seconds {
			sent := s.requests()
			for range perSecond {
				all.Go(func() { total.call(transport, host, url) })
				time.Sleep(time.Second / perSecond)
			}
			second++
			now, h := total.now(), transport.Snapshot()[0]
			sent = s.requests() - sent
			if act.mode != up {
				down += sent
			}
			fmt.Printf("    %2d s   %-8v %5d %9d %7d %8d %8d   %v\n", second, act.mode, sent, now.responses-before.responses,
				now.failed-before.failed, now.refused-before.refused, h.Waiting, h.Breakers[0].State)
			if state := h.Breakers[0].State; state != breaker.Closed && h.Waiting > 1 {
				errs = append(errs, fmt.Errorf("%d in line at %d s, while the breaker is %v", h.Waiting, second, state))
			}
			before = now
		}
	}
	all.Wait()
	fmt.Printf("\n  In 6 s of outage the service received %d of %d requests: those that opened the breaker, and probes.\n", down, 6*perSecond)
	fmt.Printf("  While the breaker was open, no request waited longer than %.1f s.\n\n", total.waited.Seconds())
	// Three failures, one request that started at the same time as a failure, and at
	// most a probe in every half second.
	if down > 3+1+12 {
		errs = append(errs, fmt.Errorf("the service received %d requests while it was down", down))
	}
	if total.waited > 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("a request waited %v for a service that was down", total.waited))
	}
	if host.State() != breaker.Closed {
		errs = append(errs, errors.New("the breaker has not closed"))
	}
	return errors.Join(errs...)
}

// call makes one request and counts its result.
func (t *tally) call(transport http.RoundTripper, host *headway.HostBreaker, url string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the URL is valid
	}
	open, begin := host.State() == breaker.Open, time.Now()
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.counts.responses++
	case errors.Is(err, headway.ErrOpen):
		t.counts.refused++
		if open {
			t.waited = max(t.waited, time.Since(begin))
		}
	default:
		t.counts.failed++
	}
}

func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}
