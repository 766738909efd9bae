package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway"
)

// A result sums up the requests of all tenants. It is an observer, which receives every
// start and its wait.
type result struct {
	begin time.Time

	mu      sync.Mutex // guards following fields
	starts  map[string]*[seconds]int
	longest map[string]time.Duration // wait
	err     error                    // the first
}

// seconds is how many seconds a row shows.
const seconds = 6

func newResult() *result {
	r := &result{begin: time.Now(), starts: make(map[string]*[seconds]int), longest: make(map[string]time.Duration)}
	for _, t := range tenants {
		r.starts[t.name] = new([seconds]int)
	}
	return r
}

// tenantKey is the context's key for the name of a request's tenant.
type tenantKey struct{}

// ask sends one request for a tenant.
func (r *result) ask(client *http.Client, url, name string) {
	ctx := context.WithValue(context.Background(), tenantKey{}, name)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		r.fail(err)
		return
	}
	req.Header.Set("X-Tenant", name)
	resp, err := client.Do(req)
	if err != nil {
		r.fail(err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.fail(fmt.Errorf("%s received %s", name, resp.Status))
	}
}

// Observe implements headway.Observer: it counts starts.
func (r *result) Observe(ctx context.Context, e headway.Event) {
	name, ok := ctx.Value(tenantKey{}).(string)
	if !ok || e.Kind != headway.EventStart {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[name][min(int(time.Since(r.begin)/time.Second), seconds-1)]++
	r.longest[name] = max(r.longest[name], e.Wait)
}

func (r *result) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// check returns an error unless every request was allowed.
func (r *result) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *result) longestOfOthers() (longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, wait := range r.longest {
		if name != greedy.name {
			longest = max(longest, wait)
		}
	}
	return longest
}

// row returns the starts of a tenant in each second, and its longest wait.
func (r *result) row(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var row strings.Builder
	for _, n := range r.starts[name] {
		if n == 0 {
			row.WriteString("   ·")
		} else {
			fmt.Fprintf(&row, "%4d", n)
		}
	}
	fmt.Fprintf(&row, " %7.2f s", r.longest[name].Seconds())
	return row.String()
}
