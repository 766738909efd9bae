package main

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// latency is the longest latency of the network, each way.
const latency = 20 * time.Millisecond

// A server allows perSecond requests in any second, by its own clock: it looks
// at the clock when a request arrives, not when it was sent.
type server struct {
	mu       sync.Mutex
	arrivals [perSecond]time.Time // of allowed requests, the oldest at next
	next     int
}

// allow reports whether a request that arrives now is allowed, and counts it.
func (s *server) allow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.arrivals[s.next]) < time.Second {
		return false
	}
	s.arrivals[s.next] = now
	s.next = (s.next + 1) % perSecond
	return true
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(rand.N(latency)) // of the request
	allowed := s.allow()
	time.Sleep(rand.N(latency)) // of the response
	if !allowed {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}
