package headway_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// S30, S15: whoever waits for a slot until its wait budget ends is refused then,
// for want of a slot, whatever limits apply: they have room. So is who stands
// behind it. Nobody can tell when they could have started.
func TestS30_RefusedForASlotAtTheEndOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &headwaytest.Vendor{Latency: time.Minute}
		transport, err := headway.NewTransport(vendor, headway.Config{Policies: []headway.Policy{{
			Hosts: []string{"api.test"}, MaxInFlight: 1,
			Rules: []headway.Rule{{Name: "search", Limit: limiter.Every(500 * time.Millisecond)}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		get := func(budget time.Duration) error {
			req, _ := http.NewRequestWithContext(headway.WithCall(t.Context(), headway.Call{MaxWait: budget}), "GET", "https://api.test/", nil)
			resp, err := transport.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		go get(0)
		synctest.Wait()
		t0 := time.Now()
		for _, budget := range []time.Duration{5 * time.Second, 3 * time.Second} { // the one behind gives up first
			go func() {
				err := get(budget)
				var refused *headway.ThrottledError
				switch {
				case !errors.As(err, &refused):
					t.Errorf("got %v, want a *ThrottledError", err)
				case refused.Reason != limiter.ReasonInFlight || refused.Rule != "" || !refused.AtLeast || refused.RetryAfter != 0:
					t.Errorf("got %+v, want one for want of a slot, at least 0 s", refused)
				case time.Since(t0) != budget:
					t.Errorf("refused after %v, want %v", time.Since(t0), budget)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(5 * time.Minute)
	})
}
