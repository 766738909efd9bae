package main

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Each service allows most requests in a period, but for Shopify: its bucket holds 40, and
// leaks one per drip. (shopify.dev, "REST Admin API rate limits")
const (
	most   = 8
	period = time.Second

	bucket = 40
	drip   = time.Second / 2
)

// A vendor is one service: it counts by its own clock, and writes what is left into the
// header of each response.
type vendor struct {
	name, host string
	most       int // requests that it allows at once
	requests   int // requests that the story sends to it
	show       func(h http.Header, left int, now, reset time.Time, refused bool)
}

var vendors = []vendor{
	{"GitHub", "api.github.test", most, 3 * most, func(h http.Header, left int, _, reset time.Time, _ bool) {
		h.Set("X-RateLimit-Limit", strconv.Itoa(most))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
		h.Set("X-RateLimit-Used", strconv.Itoa(most-left))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		h.Set("X-RateLimit-Resource", "core")
	}},
	{"OpenAI", "api.openai.test", most, 3 * most, func(h http.Header, left int, now, reset time.Time, _ bool) {
		h.Set("X-RateLimit-Limit-Requests", strconv.Itoa(most))
		h.Set("X-RateLimit-Remaining-Requests", strconv.Itoa(left))
		h.Set("X-RateLimit-Reset-Requests", fmt.Sprintf("%dms", reset.Sub(now).Milliseconds()+1))
	}},
	{"Shopify", "shop.shopify.test", bucket, bucket + 4, func(h http.Header, left int, _, _ time.Time, refused bool) {
		h.Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", bucket-left, bucket))
		if refused {
			h.Set("Retry-After", "1.0")
		}
	}},
	{"Discord", "discord.test", most, 3 * most, func(h http.Header, left int, now, reset time.Time, _ bool) {
		h.Set("X-RateLimit-Limit", strconv.Itoa(most))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
		h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(reset.UnixMilli())/1000))
		h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", math.Ceil(reset.Sub(now).Seconds()*1000)/1000))
		h.Set("X-RateLimit-Bucket", "abcd1234")
	}},
}

// A server serves all vendors, by the host of the request.
type server struct {
	mu    sync.Mutex // guards following fields
	count map[string]*counter
}

// A counter is what one service counts of its callers.
type counter struct {
	left  int
	since time.Time // when the period began; when the bucket last leaked
}

func newServer() *server { return &server{count: map[string]*counter{}} }

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	for _, v := range vendors {
		if v.host == req.Host {
			s.serve(w, v)
			return
		}
	}
	http.NotFound(w, req)
}

func (s *server) serve(w http.ResponseWriter, v vendor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	c := s.count[v.host]
	if c == nil {
		c = &counter{left: v.most, since: now.Truncate(period)}
		s.count[v.host] = c
	}
	if v.name == "Shopify" {
		drops := now.Sub(c.since) / drip
		c.left, c.since = min(bucket, c.left+int(drops)), c.since.Add(drops*drip)
	} else if start := now.Truncate(period); start.After(c.since) {
		c.left, c.since = most, start
	}
	refused := c.left == 0
	if !refused {
		c.left--
	}
	v.show(w.Header(), c.left, now, c.since.Add(period), refused)
	if refused {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}
