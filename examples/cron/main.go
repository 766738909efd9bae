// Cron shows a program that cron starts again and again, within a quota of 10 requests
// per day that all of its runs share through a file. It starts itself four times, like
// cron, each time with work for four requests. The exit status is 0 only if the server
// received exactly the quota.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/sqlite"
)

const (
	quota   = 10 // a day
	work    = 4  // requests of one run
	timeout = 30 * time.Second
)

func main() {
	var err error
	if len(os.Args) == 3 {
		err = run(os.Stdout, os.Args[1], os.Args[2])
	} else {
		err = runStory(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// run is one run of the program: it does as much work as the quota allows, and leaves the
// rest to a later run.
func run(out io.Writer, file, url string) error {
	budgets, err := sqlite.Open(sqlite.Config{Path: file})
	if err != nil {
		return err
	}
	defer budgets.Close()
	transport, err := headway.NewTransport(nil, headway.Config{
		Store:  budgets,
		Secret: []byte("the same in every run"), // in production, from the environment
		Policies: []headway.Policy{{
			Hosts:   []string{"*"},
			Limits:  []limiter.Limit{limiter.PerDay(quota)}, // in any 24 hours
			MaxWait: headway.NoWait,
		}},
	})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, Timeout: timeout}
	for i := range work {
		resp, err := client.Get(url)
		var throttled *headway.ThrottledError
		if errors.As(err, &throttled) {
			fmt.Fprintf(out, "  %d sent; the quota is used up, and has room again in %v\n", i, throttled.RetryAfter.Round(time.Minute))
			return nil
		}
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	fmt.Fprintf(out, "  %d sent\n", work)
	return nil
}

// runStory starts the runs, and counts the requests that the server receives.
func runStory(out io.Writer) error {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	dir, err := os.MkdirTemp("", "headway-cron-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "A quota of %d requests in any 24 hours; each run has work for %d.\n", quota, work)
	for n := 1; n <= 4; n++ {
		fmt.Fprintf(out, "run %d\n", n)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		cmd := exec.CommandContext(ctx, self, filepath.Join(dir, "budgets.db"), server.URL)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		err := cmd.Run()
		cancel()
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "The server received %d requests.\n", requests.Load())
	if requests.Load() != quota {
		return fmt.Errorf("want %d", quota)
	}
	return nil
}
