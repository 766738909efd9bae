package main

import (
	"net/http"
	"strconv"
	"sync"
)

// perSecond is what the service allows in any second; the client keeps to it.
const perSecond = 20

// A service allows perSecond, and says what it has left. It can be told to be
// elsewhere.
type service struct {
	mu    sync.Mutex // guards following fields
	is    mode
	got   int // requests, whatever became of them
	other int // units that others have spent
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

// answer returns the status of an answer and adds to its header; 0 is none.
func (s *service) answer(h http.Header) int {
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
	// A quota of a day, that others spend from too.
	if s.got%10 == 0 {
		s.other += 3
	}
	h.Set("X-RateLimit-Limit", "100000")
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, 100_000-s.got-s.other)))
	h.Set("X-RateLimit-Reset", "86400")
	if s.got%25 == 0 {
		h.Set("X-RateLimit-Remaining", "plenty") // nobody can read that
	}
	return http.StatusOK
}

func (s *service) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	status := s.answer(w.Header())
	if status == 0 {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	w.WriteHeader(status)
}
