package headway_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
)

// TestResourceNamedWithRequestsInFlight: when a response names a resource for the first time,
// other requests that are in flight may draw on it too, and count. So a server of 8 a second
// refuses none of four callers, in whatever order their requests arrive.
func TestResourceNamedWithRequestsInFlight(t *testing.T) {
	for range 20 {
		play(t, []headway.Policy{{Hosts: []string{"*"}}}, func(s *scene) {
			s.base.quiet = true
			var mu sync.Mutex
			left, since, refused, sent := 8, time.Now(), 0, 0
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				if now := time.Now().Truncate(time.Second); now.After(since) {
					left, since = 8, now
				}
				status := 200
				if left > 0 {
					left--
				} else {
					status, refused = 429, refused+1
				}
				lines := []string{
					"X-RateLimit-Limit: 8", fmt.Sprint("X-RateLimit-Remaining: ", left), fmt.Sprint("X-RateLimit-Used: ", 8-left),
					fmt.Sprint("X-RateLimit-Reset: ", since.Add(time.Second).Unix()), "X-RateLimit-Resource: core",
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				return says(status, "", lines...)(req)
			}
			for range 4 {
				s.all.Go(func() {
					for {
						mu.Lock()
						sent++
						over := sent > 24
						mu.Unlock()
						if over {
							return
						}
						resp, err := s.RoundTrip(ask{}.request("A"))
						if err != nil {
							s.Error(err)
							return
						}
						resp.Body.Close()
					}
				})
			}
			s.all.Wait()
			if refused > 0 {
				s.Errorf("%d were refused", refused)
			}
		})
	}
}
