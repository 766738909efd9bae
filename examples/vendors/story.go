package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway"
)

const workers = 4

// runStory sends requests to one service after the other, over base, and prints the
// learned limits. The error names each service that had to refuse a request.
func runStory(base http.RoundTripper) error {
	var first learned
	transport, err := headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{Hosts: []string{"*"}}}, // no limit of the client's own
		Observer: &first,
	})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	fmt.Printf("\n  Requests to four services, one after the other, from %d goroutines that know none of their limits.\n", workers)
	fmt.Printf("  Each allows %d per %v, Shopify %d and then one per %v, and announces that in its own dialect:\n\n", most, period, bucket, drip)
	fmt.Printf("  %-9s %5s %5s %9s   %s\n", "", "200", "429", "time", "learned from the first response")
	var wrong error
	for _, v := range vendors {
		first.forget()
		begin := time.Now()
		ok, refused, err := send(client, v.requests, "http://"+v.host)
		fmt.Printf("  %-9s %5d %5d %7.2f s   %s\n", v.name, ok, refused, time.Since(begin).Seconds(), first.text())
		if wrong = errors.Join(wrong, err); refused > 0 {
			wrong = errors.Join(wrong, fmt.Errorf("%s refused %d requests", v.name, refused))
		}
	}
	fmt.Println("\n  What is known about each now:")
	for _, h := range transport.Snapshot() {
		for _, l := range h.Learned {
			fmt.Printf("  %-18s %s: %d left, announced %.1f s ago\n", h.Host, l.Rule, l.Remaining, l.Age.Seconds())
		}
	}
	fmt.Println()
	return wrong
}

// send sends requests to one service.
func send(client *http.Client, requests int, url string) (ok, refused int64, err error) {
	var all sync.WaitGroup
	var next, granted, throttled atomic.Int64
	failed := make(chan error, workers)
	for range workers {
		all.Go(func() {
			for next.Add(1) <= int64(requests) {
				resp, err := client.Get(url)
				if err != nil {
					failed <- err
					return
				}
				resp.Body.Close()
				if resp.StatusCode == http.StatusTooManyRequests {
					throttled.Add(1)
				} else {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return granted.Load(), throttled.Load(), err
}

// learned records the first limit that is learned.
type learned struct {
	mu    sync.Mutex // guards following fields
	event *headway.Event
}

// Observe implements headway.Observer.
func (l *learned) Observe(_ context.Context, e headway.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Kind == headway.EventLearned && l.event == nil {
		l.event = &e
	}
}

func (l *learned) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event = nil
}

func (l *learned) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.event == nil {
		return "nothing"
	}
	reset := "with no reset time"
	if l.event.Reset >= 0 {
		reset = fmt.Sprintf("all back in %.1f s", l.event.Reset.Seconds())
	}
	return fmt.Sprintf("%d of %d left, %s (%s)", l.event.Remaining, l.event.Limit, reset, l.event.Dialect)
}
