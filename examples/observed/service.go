package main

import (
	"net/http"
	"strconv"
	"sync"
)

// perSecond is what the service allows in any second, and what the client's limit is.
const perSecond = 20

// A service allows perSecond requests, and announces what is left. Its mode can be
// changed.
type service struct {
	mu    sync.Mutex // guards following fields
	is    mode
	got   int // requests that have arrived
	other int // units that other clients have spent
}

type mode int

const (
	up   mode = iota
	busy      // refuses one request, for 2 s
	down      // connections break
)

func (s *service) become(m mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is = m
}

func (s *service) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// respond returns the status of a response and adds to its header; 0 means no response.
func (s *service) respond(h http.Header) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got++
	switch s.is {
	case busy:
		s.is = up
		h.Set("Retry-After", "2")
		return http.StatusTooManyRequests
	case down:
		return 0
	}
	// A quota per day, from which other clients spend too.
	if s.got%10 == 0 {
		s.other += 3
	}
	h.Set("X-RateLimit-Limit", "100000")
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, 100_000-s.got-s.other)))
	h.Set("X-RateLimit-Reset", "86400")
	if s.got%25 == 0 {
		h.Set("X-RateLimit-Remaining", "plenty") // not a number
	}
	return http.StatusOK
}

func (s *service) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	status := s.respond(w.Header())
	if status == 0 {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	w.WriteHeader(status)
}
