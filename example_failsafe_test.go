package headway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A breaker of failsafe-go's goes over the Transport: what it refuses has spent
// nothing. It has to be configured so that a 429 and a refusal of the Transport's are no
// failures; it then takes them for successes, for it knows no third.
//
// What Policy.Breaker promises beyond that it cannot keep: who stands in line when
// it opens waits on and is sent, a probe holds its place while it stands in line
// and for as long as it hangs, a caller who gives up counts as a failure or a
// success, there is one breaker for all hosts, and no slow start.
func Example_failsafe() {
	down := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	transport, err := headway.NewTransport(down, headway.Config{Policies: []headway.Policy{
		{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(10)}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	breaker := circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool {
			if err != nil {
				return !errors.Is(err, headway.ErrThrottled)
			}
			return resp.StatusCode >= 500
		}).
		WithFailureThreshold(2).
		WithDelay(5 * time.Second).
		Build()
	guarded := failsafe.With[*http.Response](breaker)
	client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return guarded.Get(func() (*http.Response, error) { return transport.RoundTrip(req) })
	})}
	for range 3 {
		_, err := client.Get("http://api.example.com/")
		fmt.Println(errors.Is(err, circuitbreaker.ErrOpen), breaker.State())
	}
	quota, err := transport.Quota("api.example.com:80", "10/1s", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	left, err := quota.Remaining(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(left, "of 10 left")
	// Output:
	// false closed
	// false open
	// true open
	// 8 of 10 left
}
