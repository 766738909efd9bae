package retry_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// hiccups responds with 503, then 429, then 200.
func hiccups(a headwaytest.Arrival, r *headwaytest.Reply) {
	r.Status = []int{503, 429, 200}[min(a.N, 2)]
	r.Header.Set("Retry-After", "0") // else the Transport waits, a second at first
}

func ExampleNewClient() {
	vendor := &headwaytest.Vendor{Script: hiccups}
	srv := httptest.NewServer(vendor)
	defer srv.Close()
	transport, err := headway.NewTransport(nil, headway.Config{Policies: []headway.Policy{{
		Hosts:  []string{"*"},
		Limits: []limiter.Limit{limiter.PerSecond(50)},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	client, err := retry.NewClient(transport, retry.Config{
		MinBackoff: 10 * time.Millisecond,
		MaxElapsed: 30 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()

	resp, err := client.Get(srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	sent, _ := vendor.Count()
	fmt.Println(resp.StatusCode, "after", sent, "attempts")
	// Output: 200 after 3 attempts
}

func ExampleIdempotent() {
	vendor := &headwaytest.Vendor{Script: hiccups}
	transport, err := headway.NewTransport(vendor, headway.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := retry.NewClient(transport, retry.Config{MinBackoff: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	// A search by POST changes nothing, so that it may be repeated.
	ctx := retry.Idempotent(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/search", nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

// For an SDK that retries by itself, make a context whose requests share one
// allowance: its retries and those of this package then add up instead of
// multiplying. If the SDK can switch its retries off, that is better.
func ExampleShared() {
	vendor := &headwaytest.Vendor{Script: func(_ headwaytest.Arrival, r *headwaytest.Reply) { r.Status = 503 }}
	transport, err := headway.NewTransport(vendor, headway.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := retry.NewClient(transport, retry.Config{MinBackoff: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}

	// An SDK makes up to three attempts for one call.
	sdk := func(ctx context.Context) error {
		for range 3 {
			req, err := http.NewRequestWithContext(ctx, "GET", "https://api.example.com/item", nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		return errors.New("sdk: giving up")
	}

	err = sdk(retry.Shared(context.Background()))
	sent, _ := vendor.Count()
	fmt.Println(err, "after", sent, "attempts: 3 of its own and 4 more")
	// Output: sdk: giving up after 7 attempts: 3 of its own and 4 more
}

// Another library, here failsafe-go, can do the retries. Its attempts pass the
// Transport, and wait in line like any other request. It must not retry the
// Transport's refusals, and it marks each attempt by its number.
func Example_failsafe() {
	vendor := &headwaytest.Vendor{Script: hiccups}
	transport, err := headway.NewTransport(vendor, headway.Config{
		Policies: []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
			{Name: "calls", Limit: limiter.PerHour(1), FirstAttemptOnly: true},
		}, MaxWait: headway.NoWait}},
		Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) { fmt.Println(e.Kind, "of attempt", e.Attempt) }),
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	policy := retrypolicy.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool {
			return err != nil || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
		}).
		AbortOnErrors(headway.ErrThrottled, headway.ErrKey).
		OnRetryScheduled(func(e failsafe.ExecutionScheduledEvent[*http.Response]) {
			if resp := e.LastResult(); resp != nil {
				resp.Body.Close()
			}
		}).
		ReturnLastFailure().
		Build()
	get := func() (*http.Response, error) {
		return failsafe.With(policy).GetWithExecution(func(e failsafe.Execution[*http.Response]) (*http.Response, error) {
			ctx := headway.WithAttempt(context.Background(), e.Attempts()-1)
			req, err := http.NewRequestWithContext(ctx, "GET", "https://api.example.com/item", nil)
			if err != nil {
				return nil, err
			}
			return client.Do(req)
		})
	}

	resp, err := get()
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	_, err = get() // the limit of one request per hour is used up
	fmt.Println("throttled:", errors.Is(err, headway.ErrThrottled))
	// Output:
	// start of attempt 0
	// start of attempt 1
	// start of attempt 2
	// 200
	// refused of attempt 0
	// throttled: true
}
