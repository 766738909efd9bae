// Quickstart sends 300 requests from 20 goroutines to a server that allows 50
// in any second: first with a bare http.Client, then with the same client
// wrapped by Headway. Its status is 0 only when the second saw no 429.
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
	perSecond = 50 // what the server allows, and what Headway is told
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

	fmt.Printf("\n  A server allows %d requests in any second and answers 429 beyond that.\n", perSecond)
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
		return fmt.Errorf("with Headway, %d requests were answered with 429", got.refused)
	}
	return nil
}

// A result is how the requests of one client went.
type result struct {
	ok, refused   int // answered with 200, with 429
	took, longest time.Duration
}

// An answer is how one request went.
type answer struct {
	status int
	wait   time.Duration // from asking for it to the answer
	err    error
}

// measure sends all requests to a fresh server and prints a row about them.
func measure(name string, client *http.Client) (result, error) {
	s := httptest.NewServer(new(server))
	defer s.Close()

	begin := time.Now()
	answers := make(chan answer, requests)
	for range callers {
		go func() {
			for range requests / callers {
				answers <- get(client, s.URL)
			}
		}()
	}

	var r result
	redraw := time.NewTicker(50 * time.Millisecond)
	defer redraw.Stop()
	for r.ok+r.refused < requests {
		select {
		case a := <-answers:
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
		fmt.Print("\x1b[K") // no bar any more
	}
	fmt.Println(r.row(name))
	return r, nil
}

func get(client *http.Client, url string) answer {
	begin := time.Now()
	resp, err := client.Get(url)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	return answer{status: resp.StatusCode, wait: time.Since(begin)}
}

// onTerminal says that somebody watches stdout.
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
