package headwaytest_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// A policy, tested in virtual time from zero on. In your package this is
// TestPolicy.
func testPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(2)}}
		rec := headwaytest.NewRecorder(vendor)
		transport, err := headway.NewTransport(rec, headway.Config{Policies: []headway.Policy{{
			Hosts:  []string{"api.example.com"},
			Limits: []limiter.Limit{limiter.PerSecond(2)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: transport}

		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				resp, err := client.Get(fmt.Sprintf("https://api.example.com/items/%d", i))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
			synctest.Wait() // until this one is in line, so that they arrive in order
		}
		all.Wait()

		rec.StartedAt(t, 0, 0, time.Second, time.Second, 2*time.Second)
		rec.AtMost(t, 2, time.Second)
		rec.Before(t, headwaytest.Start{Path: "/items/2"}, headwaytest.Start{Path: "/items/3"})
		vendor.NoRefusals(t)
		headwaytest.AssertIdle(t, transport)
		fmt.Print(rec)
	})
}

func Example() {
	testPolicy(new(testing.T)) // go test gives a test its t; an example has none
	// Output:
	//           0s  GET api.example.com/items/0
	//           0s  GET api.example.com/items/1
	//           1s  GET api.example.com/items/2
	//           1s  GET api.example.com/items/3
	//           2s  GET api.example.com/items/4
}
