package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

const (
	calls   = 100 // during the outage
	retries = 4
)

// A request is sent to the server, and has an expected result.
type request struct {
	method, path string
	key          bool // with an Idempotency-Key
	sends        int
	end          string
}

var requests = []request{
	{"GET", "/ok", false, 1, "200"},
	{"GET", "/down/down/ok", false, 3, "200"},
	{"GET", "/busy/ok", false, 2, "200"},
	{"GET", "/cut/ok", false, 2, "200"},
	{"GET", "/missing", false, 1, "404"},
	{"POST", "/busy/ok", false, 2, "200"},
	{"POST", "/down/ok", false, 1, "503"},
	{"POST", "/cut/ok", false, 1, "error"},
	{"POST", "/cut/ok", true, 2, "200"},
	{"GET", "/down", false, 1 + retries, "503"},
}

// runStory sends the requests to one server, and those of the outage to another, over
// base, and prints the results. The error names each unexpected one.
func runStory(base http.RoundTripper, flaky, down string) error {
	var sent atomic.Int64
	transport, err := headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(1000)}}},
		Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
			if e.Kind == headway.EventStart {
				sent.Add(1)
			}
		}),
	})
	if err != nil {
		return err
	}
	client, err := retry.NewClient(transport, retry.Config{
		MaxRetries: retries, MinBackoff: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}

	fmt.Printf("\n  A server handles each attempt as the path says; \"busy\" is a 429 with Retry-After: 1.\n\n")
	fmt.Printf("  %-28s %5s  %-9s %6s   %s\n", "", "sent", "result", "after", "why")
	var wrong error
	for i, r := range requests {
		begin, before := time.Now(), sent.Load()
		end := do(client, r, flaky, fmt.Sprint(i))
		sends := int(sent.Load() - before)
		fmt.Printf("  %-28s %5d  %-9s %4.1f s   %s\n", r, sends, end, time.Since(begin).Seconds(), r.why())
		if sends != r.sends || end != r.end {
			wrong = errors.Join(wrong, fmt.Errorf("%s was sent %d times and ended in %s, want %d and %s", r, sends, end, r.sends, r.end))
		}
	}

	before := sent.Load()
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { do(client, request{method: "GET", path: "/down"}, down, fmt.Sprint(i)) })
	}
	all.Wait()
	amplification := float64(sent.Load()-before) / calls
	fmt.Printf("\n  Another server is down. %d calls at once cause %d requests, %.2f per call.\n", calls, sent.Load()-before, amplification)
	fmt.Printf("  Without a retry budget, it would be %d.00.\n\n", 1+retries)
	if amplification > 1.5 {
		wrong = errors.Join(wrong, fmt.Errorf("the outage was amplified %.2f times, want 1.5 at most", amplification))
	}
	return wrong
}

// do sends a request, and returns the status of the response, or "error".
func do(client *http.Client, r request, url, name string) string {
	req, err := http.NewRequest(r.method, url+r.path, strings.NewReader("hello"))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Name", name)
	if r.key {
		req.Header.Set("Idempotency-Key", name)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "error"
	}
	defer resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

func (r request) String() string {
	s := r.method + " " + r.path
	if r.key {
		s += ", with a key"
	}
	return s
}

// why says in a few words why the request was sent that often.
func (r request) why() string {
	first, _, _ := strings.Cut(strings.Trim(r.path, "/"), "/")
	switch {
	case r.sends == 1+retries:
		return "retried as often as allowed"
	case r.end == "404":
		return "a retry would not find it either"
	case first == "ok":
		return ""
	case r.sends == 1:
		return "it may have been processed: a POST is not repeated"
	case first == "busy":
		return "it was not processed, and the server said when to retry"
	case r.key:
		return "the key lets the server detect a repetition"
	}
	return "a GET may be repeated"
}
