package headway_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// The example in the documentation of package desk.
func TestDeskExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		starts := map[string]time.Duration{}
		base := roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			name := req.URL.Path[1:]
			mu.Lock()
			starts[name] = time.Since(began)
			mu.Unlock()
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
			if name == "A" {
				time.Sleep(300 * time.Millisecond)
				resp.StatusCode, resp.Header["Retry-After"] = 503, []string{"5"}
				resp.Body = io.NopCloser(strings.NewReader("busy"))
			}
			return resp, nil
		})
		tr, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{
			Hosts: []string{"*"}, Limits: []limiter.Limit{{N: 2, Per: time.Second}}, MaxInFlight: 1, Breaker: &breaker.Config{},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		send := func(name string, hold time.Duration) {
			all.Go(func() {
				req, _ := http.NewRequest("GET", "http://h.test/"+name, nil)
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(name, err)
					return
				}
				time.Sleep(hold)
				resp.Body.Close()
			})
			synctest.Wait()
		}
		send("A", 100*time.Millisecond)
		send("B", 0)
		time.Sleep(100 * time.Millisecond)
		send("C", 0)
		all.Wait()
		if starts["A"] != 0 || starts["B"] != 5300*time.Millisecond || starts["C"] != 5800*time.Millisecond {
			t.Errorf("the starts were %v, want A at 0, B at 5.3 s and C at 5.8 s", starts)
		}
	})
}
