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
	perSecond = 30 // requests that callers want to make
	limit     = 25 // and may
)

// acts is what happens to the service, and for how many seconds.
var acts = []struct {
	mode    mode
	seconds int
}{{up, 2}, {dead, 3}, {hanging, 3}, {up, 4}}

// A tally counts what became of requests.
type tally struct {
	mu     sync.Mutex // guards following fields
	counts counts
	waited time.Duration // the longest that one waited who came while it was open
}

type counts struct {
	answered, failed int
	refused          int // by the breaker
}

// tell makes requests over base to the service at url, and tells of them.
func tell(base http.RoundTripper, url string, s *service) error {
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
	fmt.Printf("\n  %d requests a second to a service that allows %d; 3 failures in a row open the breaker:\n\n", perSecond, limit)
	fmt.Printf("    %4s   %-8s %5s %9s %7s %8s %8s   %s\n", "time", "service", "sent", "answered", "failed", "refused", "in line", "breaker")

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
			fmt.Printf("    %2d s   %-8v %5d %9d %7d %8d %8d   %v\n", second, act.mode, sent, now.answered-before.answered,
				now.failed-before.failed, now.refused-before.refused, h.Waiting, h.Breakers[0].State)
			if state := h.Breakers[0].State; state != breaker.Closed && h.Waiting > 1 {
				errs = append(errs, fmt.Errorf("%d in line at %d s, while the breaker is %v", h.Waiting, second, state))
			}
			before = now
		}
	}
	all.Wait()
	fmt.Printf("\n  In 6 s of outage the service got %d of %d requests: what opened the breaker, and probes.\n", down, 6*perSecond)
	fmt.Printf("  Of those who came while it was open, nobody waited longer than %.1f s.\n\n", total.waited.Seconds())
	// Three that failed, one that started at the same time, and a probe in every
	// half second at most.
	if down > 3+1+12 {
		errs = append(errs, fmt.Errorf("the service got %d requests while it was down", down))
	}
	if total.waited > 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("somebody waited %v for a service that was down", total.waited))
	}
	if host.State() != breaker.Closed {
		errs = append(errs, errors.New("the breaker has not closed"))
	}
	return errors.Join(errs...)
}

// call makes one request and counts what becomes of it.
func (t *tally) call(transport http.RoundTripper, host *headway.HostBreaker, url string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the URL is ours
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
		t.counts.answered++
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
