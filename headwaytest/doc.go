// Package headwaytest tests programs that live under limits: the policies that they
// give to Headway, and their own retries and imports. The tests need no network and,
// in a testing/synctest bubble, no time: an hour of waiting passes at once, and every
// instant is exact.
//
// A [Vendor] plays the service: it enforces limits by its own clock, takes time to
// respond, and fails as scripted. A [Recorder] records when requests started, and has
// assertions about that. A [Body] reports whether it was read and closed, and
// [AssertIdle] whether any request is left in line or in flight.
//
// # A first test
//
// This test proves that a policy keeps five imports within the limit of its vendor,
// and wastes no time:
//
//	func TestPolicy(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			vendor := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(2)}}
//			rec := headwaytest.NewRecorder(vendor)
//			transport, err := headway.NewTransport(rec, headway.Config{Policies: []headway.Policy{{
//				Hosts:  []string{"api.example.com"},
//				Limits: []limiter.Limit{limiter.PerSecond(2)},
//			}}})
//			if err != nil {
//				t.Fatal(err)
//			}
//			client := &http.Client{Transport: transport}
//
//			var all sync.WaitGroup
//			for i := range 5 {
//				all.Go(func() {
//					resp, err := client.Get(fmt.Sprintf("https://api.example.com/items/%d", i))
//					if err != nil {
//						t.Error(err)
//						return
//					}
//					resp.Body.Close()
//				})
//				synctest.Wait() // until this one is in line, so that they arrive in order
//			}
//			all.Wait()
//
//			rec.StartedAt(t, 0, 0, time.Second, time.Second, 2*time.Second)
//			rec.AtMost(t, 2, time.Second)
//			rec.Before(t, headwaytest.Start{Path: "/items/2"}, headwaytest.Start{Path: "/items/3"})
//			vendor.NoRefusals(t)
//			headwaytest.AssertIdle(t, transport)
//		})
//	}
//
// To see how it fails, change a number. t.Log(rec) shows the starts.
//
// # Failures
//
// Script decides the reply to each arrival:
//
//	vendor.Script = func(a headwaytest.Arrival, r *headwaytest.Reply) {
//		switch a.N {
//		case 0:
//			r.Status = http.StatusServiceUnavailable
//			r.Header.Set("Retry-After", "7")
//		case 1:
//			r.Err = errors.New("connection reset")
//		}
//	}
//
// # In a bubble
//
// Create everything inside the bubble: transport, Vendor, Recorder. Time passes only
// while all goroutines of the bubble wait: what happens between two waits happens in
// one instant. Goroutines that run in one instant do so in any order; where the order
// matters, call [synctest.Wait] after each. A request to a Vendor that hangs needs a
// context that ends. There is no network in a bubble: to test with one, put the Vendor
// behind an httptest.Server, in real time.
package headwaytest
