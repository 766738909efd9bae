package headwaytest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// fetch is the code under test: it tries until the answer is 200, and doubles
// the time between two tries.
func fetch(ctx context.Context, client *http.Client, url string) error {
	for n := 0; ; n++ {
		req, err := http.NewRequestWithContext(headway.WithAttempt(ctx, n), http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(time.Second << n):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A retry loop, tested in virtual time. In your package this is a test.
func testFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &headwaytest.Vendor{
			Latency: 100 * time.Millisecond,
			Script: func(a headwaytest.Arrival, r *headwaytest.Reply) {
				switch a.N {
				case 0:
					r.Status = http.StatusServiceUnavailable
				case 1:
					r.Hang = true
				case 2:
					r.Err = fmt.Errorf("connection reset")
				}
			},
		}
		rec := headwaytest.NewRecorder(vendor)
		client, err := headway.Wrap(&http.Client{Transport: rec, Timeout: 5 * time.Second}, limiter.PerSecond(1))
		if err != nil {
			t.Fatal(err)
		}

		err = fetch(t.Context(), client, "https://api.example.com/item")

		if err != nil {
			t.Error(err)
		}
		rec.StartedAt(t, 0,
			1200*time.Millisecond,  // 200 ms of latency, and a pause of 1 s
			8200*time.Millisecond,  // the client's timeout of 5 s, and a pause of 2 s
			12400*time.Millisecond, // 200 ms of latency, and a pause of 4 s
		)
		fmt.Print(rec)
	})
}

func ExampleVendor_retry() {
	testFetch(new(testing.T)) // go test gives a test its t; an example has none
	// Output:
	//           0s  GET api.example.com/item
	//         1.2s  GET api.example.com/item  attempt 1
	//         8.2s  GET api.example.com/item  attempt 2
	//        12.4s  GET api.example.com/item  attempt 3
}
