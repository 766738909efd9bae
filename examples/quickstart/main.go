// Quickstart sends 300 requests from 20 goroutines to a server that allows 50
// in any second: first with a bare http.Client, then with a client whose transport is
// Headway. The exit status is 0 only if the second client received no 429.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

const (
	perSecond = 50 // the limit of the server, and of the client's policy
	requests  = 300
	callers   = 20

	// ideal is when the last request can start: 50 at once, 50 more each second.
	ideal = (requests/perSecond - 1) * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run() error {
	bare := &http.Client{Timeout: time.Minute}
	wrapped, err := headway.Wrap(bare, limiter.Limit{N: perSecond, Per: time.Second, Strict: true})
	if err != nil {
		return err
	}

	fmt.Printf("\n  A server allows %d requests in any second, and refuses the others with a 429.\n", perSecond)
	fmt.Printf("  %d requests from %d goroutines, 0 to %d ms of latency each way:\n\n", requests, callers, latency.Milliseconds())
	fmt.Printf("  %-16s %5s %5s %9s %14s\n", "", "200", "429", "time", "longest wait")
	if _, err := measure("bare http.Client", bare); err != nil {
		return err
	}
	got, err := measure("with Headway", wrapped)
	if err != nil {
		return err
	}
	fmt.Printf("\n  Ideal, with %d at once and %d more each second: %.2f s. Headway took %.2f s longer.\n\n",
		perSecond, perSecond, ideal.Seconds(), (got.took - ideal).Seconds())
	if got.ok != requests {
		return fmt.Errorf("with Headway, %d requests were refused with a 429", got.refused)
	}
	return nil
}

// A result sums up the requests of one client.
type result struct {
	ok, refused   int // responses with status 200, with 429
	took, longest time.Duration
}

// An outcome is the outcome of one request.
type outcome struct {
	status int
	wait   time.Duration // from the call to the response
	err    error
}

// measure sends all requests to a new server, and prints their row.
func measure(name string, client *http.Client) (result, error) {
	s := httptest.NewServer(new(server))
	defer s.Close()

	begin := time.Now()
	outcomes := make(chan outcome, requests)
	for range callers {
		go func() {
			for range requests / callers {
				outcomes <- get(client, s.URL)
			}
		}()
	}

	var r result
	redraw := time.NewTicker(50 * time.Millisecond)
	defer redraw.Stop()
	for r.ok+r.refused < requests {
		select {
		case a := <-outcomes:
			switch {
			case a.err != nil:
				return r, a.err
			case a.status == http.StatusOK:
				r.ok++
			default:
				r.refused++
			}
			r.longest = max(r.longest, a.wait)
		case <-redraw.C:
			if onTerminal {
				fmt.Print(r.row(name), "  ", r.bar(), "\r")
			}
		}
		r.took = time.Since(begin)
	}
	if onTerminal {
		fmt.Print("\x1b[K") // clears the bar
	}
	fmt.Println(r.row(name))
	return r, nil
}

func get(client *http.Client, url string) outcome {
	begin := time.Now()
	resp, err := client.Get(url)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	return outcome{status: resp.StatusCode, wait: time.Since(begin)}
}

// onTerminal reports whether stdout is a terminal.
var onTerminal = func() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}()

func (r result) row(name string) string {
	return fmt.Sprintf("  %-16s %5d %5d %7.2f s %12.2f s", name, r.ok, r.refused, r.took.Seconds(), r.longest.Seconds())
}

func (r result) bar() string {
	const width = 20
	full := width * (r.ok + r.refused) / requests
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
