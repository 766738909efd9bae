package headway_test

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// Public reports of clients that a server's numbers slowed down, or that were refused in spite
// of them, replayed here against servers that count as those did.

// A reportBucket is a server with one bucket of n units.
type reportBucket struct {
	n, perSecond float64
	latency      time.Duration
	// headers returns those of a response. left are the units that are left, full is how
	// many seconds it takes until the bucket is full, and next until a unit is left; next is
	// zero unless the response refuses the request.
	headers func(left int, full, next float64) []string

	mu      sync.Mutex // guards following fields
	level   float64
	last    time.Time // when the last request arrived
	refused int
}

func (b *reportBucket) answer(req *http.Request) (*http.Response, error) {
	status, lines := b.take()
	time.Sleep(b.latency)
	return says(status, "", lines...)(req)
}

func (b *reportBucket) take() (status int, lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.last.IsZero() {
		b.level, b.last = b.n, now
	}
	b.level = min(b.n, b.level+b.perSecond*now.Sub(b.last).Seconds())
	b.last = now
	const exact = 1e-9 // of a unit
	next := 0.0
	if status = 200; b.level >= 1-exact {
		b.level--
	} else {
		b.refused++
		status, next = 429, (1-b.level)/b.perSecond
	}
	return status, b.headers(int(b.level+exact), (b.n-b.level)/b.perSecond, next)
}

// reportSeconds returns whole seconds, rounded up.
func reportSeconds(seconds float64) int { return int(math.Ceil(seconds - 1e-9)) }

// serve sends requests from n callers, each one after another until an instant, and returns
// how many were not refused. The first request is alone.
func (s *scene) serve(n int, until time.Duration, a ask) (served int) {
	s.base.quiet = true
	var mu sync.Mutex
	call := func() {
		resp, err := s.RoundTrip(a.request(""))
		if err != nil {
			s.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			mu.Lock()
			defer mu.Unlock()
			served++
		}
	}
	call()
	for range n {
		s.all.Go(func() {
			for time.Since(s.base.epoch) < until {
				call()
			}
		})
	}
	s.all.Wait()
	return served
}

// throttled/throttled 55, TheThingsNetwork/lorawan-stack 5080, elastic/opentelemetry-collector-components
// 619 and PetterKraabol/Twitch-Python 4: the reset is the time until the bucket is full. A client
// that waits for it loses most of the bucket, or sends too many at its end. Here requests use
// each unit as it returns.
func TestReportResetUntilFull(t *testing.T) {
	play(t, limits(), func(s *scene) {
		b := &reportBucket{n: 6, perSecond: 1, latency: 100 * time.Millisecond, headers: func(left int, full, next float64) []string {
			lines := []string{"X-RateLimit-Limit: 6", fmt.Sprint("X-RateLimit-Remaining: ", left), fmt.Sprint("X-RateLimit-Reset: ", reportSeconds(full))}
			if next > 0 {
				lines = append(lines, fmt.Sprint("Retry-After: ", reportSeconds(next)))
			}
			return lines
		}}
		s.base.answer = b.answer
		if served := s.serve(10, 2*time.Minute, ask{}); served < 115 || b.refused > 25 {
			s.Errorf("got %d of 126 served in two minutes, and %d refused; want at least 115, and at most 25", served, b.refused)
		}
	})
}

// SGrondin/bottleneck 119 and donutdan4114/shopify 15: clients treat a leaky bucket of 40 that leaks
// 2 per second as a window (40, then none for a minute), or wait long before it is full. Here
// 40 start immediately, and then 2 per second: the server's fill is our count.
func TestReportLeakyBucket(t *testing.T) {
	play(t, limits(limiter.Limit{N: 2, Per: time.Second, Law: limiter.Bucket, Burst: 40}), func(s *scene) {
		b := &reportBucket{n: 40, perSecond: 2, headers: func(left int, _, _ float64) []string {
			return []string{fmt.Sprintf("X-Shopify-Shop-Api-Call-Limit: %d/40", 40-left)}
		}}
		s.base.answer = b.answer
		all, want := names("A", 60), ""
		for i, name := range all {
			want += fmt.Sprintf(" %s@%v", name, time.Duration(max(0, i-39))*500*time.Millisecond)
		}
		s.sendAll(ask{url: "https://shop.myshopify.com/admin/api/2024-01/orders.json"}, all...)
		s.wantStarts(want)
		if b.refused > 0 {
			s.Errorf("%d were refused", b.refused)
		}
	})
}

// yiisoft/yii-web 215: four uploads of 2 s run at a time, and the numbers in their responses are
// those of their beginning; a client that waits for all of them and takes the lowest number is
// refused. Here a number is compared with our count of the same instant. None is refused,
// and once the numbers show what the reset means, uploads start as they would without
// numbers, the last of them after 95 s.
func TestReportSlowUploads(t *testing.T) {
	play(t, limits(limiter.Limit{N: 1, Per: time.Second, Law: limiter.Bucket, Burst: 5}), func(s *scene) {
		b := &reportBucket{n: 5, perSecond: 1, latency: 2 * time.Second, headers: func(left int, full, _ float64) []string {
			return []string{"X-Rate-Limit-Limit: 5", fmt.Sprint("X-Rate-Limit-Remaining: ", left), fmt.Sprint("X-Rate-Limit-Reset: ", reportSeconds(full))}
		}}
		s.base.answer = b.answer
		for range 4 {
			s.all.Go(func() {
				for range 25 {
					resp, err := s.RoundTrip(ask{}.request("up"))
					if err != nil {
						s.Error(err)
						return
					}
					resp.Body.Close()
				}
			})
		}
		s.all.Wait()
		if last := b.last.Sub(s.base.epoch); last > 150*time.Second || b.refused > 0 {
			s.Errorf("the last of 100 started at %v, and %d were refused; want it by 2m30s, and none", last, b.refused)
		}
	})
}

// twitchdev/issues 597: the numbers imply 800 units per minute, the bucket gets 600, and a
// client that believes its own count is refused continually. Here the numbers correct it.
func TestReportRefillSlowerThanItLooks(t *testing.T) {
	play(t, limits(limiter.Limit{N: 800, Per: time.Minute, Law: limiter.Bucket}), func(s *scene) {
		s.inEpochs()
		b := &reportBucket{n: 800, perSecond: 10, latency: 150 * time.Millisecond, headers: func(left int, full, _ float64) []string {
			reset := time.Now().Add(time.Duration(full * 600 / 800 * float64(time.Second)))
			return []string{"Ratelimit-Limit: 800", fmt.Sprint("Ratelimit-Remaining: ", left), fmt.Sprint("Ratelimit-Reset: ", reset.Unix())}
		}}
		s.base.answer = b.answer
		served := s.serve(20, 10*time.Minute, ask{url: "https://api.twitch.tv/helix/users"})
		if served < 6800*90/100 || b.refused > 6800*2/100 {
			s.Errorf("got %d of 6800 served in ten minutes, and %d refused; want 90 %%, and at most 2 %%", served, b.refused)
		}
	})
}

// Metron-Project/metron 629: the reset of a rolling window is when its oldest request expires. A
// client that sends all it has at that instant is refused, again and again. Here one
// request starts as one unit returns.
func TestReportResetOfTheOldest(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.inEpochs()
		var window []time.Duration // when the requests that count arrived
		var last time.Duration
		refused := 0
		s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
			at := time.Since(s.base.epoch)
			for len(window) > 0 && at-window[0] >= time.Minute {
				window = window[1:]
			}
			var lines []string
			status := 200
			if len(window) < 5 {
				window = append(window, at)
				last = at
			} else {
				refused++
				status = 429
				lines = append(lines, fmt.Sprint("Retry-After: ", reportSeconds((window[0]+time.Minute-at).Seconds())))
			}
			return says(status, "", append(lines, "RateLimit-Limit: 5", fmt.Sprint("RateLimit-Remaining: ", 5-len(window)),
				fmt.Sprint("RateLimit-Reset: ", s.base.epoch.Add(window[0]+time.Minute).Unix()))...)(req)
		})
		a := ask{url: "https://api.digitalocean.com/v2/droplets"}
		for i := range 5 {
			s.until(time.Duration(i) * 10 * time.Second)
			s.send("A", a)
		}
		s.until(45 * time.Second)
		for range 5 {
			s.all.Go(func() {
				for status := 0; status != 200; { // until it is served
					resp, err := s.RoundTrip(a.request("B"))
					if err != nil {
						s.Error(err)
						return
					}
					resp.Body.Close()
					status = resp.StatusCode
				}
			})
		}
		s.all.Wait()
		if refused > 1 || last < 100*time.Second || last > 150*time.Second {
			s.Errorf("%d were refused, and the last was served at %v; want at most one, and 1m40s to 1m45s", refused, last)
		}
	})
}
