package headway_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// An observer may send a request to the very host whose start it receives,
// though others start at the same instant: the reported one has handed over before.
func TestObserverMaySend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := headwaytest.NewRecorder(nil)
		var transport *headway.Transport
		get := func(path string) {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.test"+path, nil)
			if resp, err := transport.RoundTrip(req); err != nil {
				t.Errorf("%s: %v", path, err)
			} else {
				resp.Body.Close()
			}
		}
		told := false
		observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
			if e.Kind == headway.EventStart && e.Wait > 0 && !told {
				told = true
				get("/told")
			}
		})
		var err error
		transport, err = headway.NewTransport(rec, headway.Config{Observer: observer, Policies: []headway.Policy{{
			Hosts: []string{"*"}, Limits: []limiter.Limit{{N: 3, Per: 10 * time.Second}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			get("/first")
		}
		go get("/waits")
		synctest.Wait()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := len(rec.Starts()); got != 5 {
			t.Errorf("%d starts, want 5: three, the one that waited, and the observer's", got)
		}
	})
}
