package headway_test

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

// Under strict limits planned starts are guesses until the answers come. A
// tenant that asks for much, and waits by such guesses, does not hold the others
// up: together they want less than there is, so each of them starts within its
// account's period, whatever the latency.
func TestS18_FairUnderStrictLimits(t *testing.T) {
	for _, strict := range []struct{ account, tenant bool }{{true, false}, {true, true}, {false, true}} {
		for _, latency := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(strict, latency), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					vendor := &headwaytest.Vendor{MaxLatency: latency, Seed: 3}
					transport, err := headway.NewTransport(vendor, headway.Config{Policies: []headway.Policy{{
						Hosts:  []string{"*"},
						Limits: []limiter.Limit{{N: 20, Per: time.Second, Strict: strict.account}},
						Rules:  []headway.Rule{{Name: "tenant", Limit: limiter.Limit{N: 10, Per: time.Second, Strict: strict.tenant}, Key: headway.ByHeader("Tenant")}},
					}}})
					if err != nil {
						t.Fatal(err)
					}
					var all sync.WaitGroup
					send := func(tenant string, most time.Duration) {
						all.Go(func() {
							req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.test/", nil)
							req.Header.Set("Tenant", tenant)
							t0 := time.Now()
							resp, err := transport.RoundTrip(req)
							if err != nil {
								t.Error(err)
								return
							}
							resp.Body.Close()
							if d := time.Since(t0); d > most {
								t.Errorf("tenant %s came at %v and had its answer after %v, want at most %v", tenant, t0.Format("05.000"), d, most)
							}
						})
					}
					for range 60 {
						send("greedy", 10*time.Second)
					}
					time.Sleep(20 * time.Millisecond)
					for range 4 {
						for i := range 8 {
							send(fmt.Sprint(i), time.Second+2*latency)
						}
						time.Sleep(time.Second)
					}
					all.Wait()
				})
			})
		}
	}
}
