package main

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ready is the path at which processes wait for each other.
const ready = "/ready"

// latency is how long the service takes for a response.
const latency = 20 * time.Millisecond

// A service allows limit requests in any second, by its own clock when a request arrives.
type service struct {
	came sync.WaitGroup // waits for the processes

	mu       sync.Mutex // guards following fields
	arrivals []arrival  // all, in order
	allowed  [limit]time.Time
	next     int // the oldest of allowed
}

// An arrival is one request.
type arrival struct {
	at      time.Time
	process int  // 1 is the first
	away    bool // started without the store
	refused bool
}

// ServeHTTP serves a process at the path of its number.
func (s *service) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	number, path := req.URL.Path, ""
	if number, path, _ = strings.Cut(number[1:], "/"); path == ready[1:] {
		s.came.Done()
		s.came.Wait()
		return
	}
	process, err := strconv.Atoi(number)
	if err != nil || process < 1 || process > processes {
		http.NotFound(w, req)
		return
	}
	refused := s.arrive(arrival{process: process, away: req.Header.Get("Away") != ""})
	time.Sleep(latency)
	if refused {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// arrive counts a request that arrives now, and reports whether it is refused.
func (s *service) arrive(a arrival) (refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.at = time.Now()
	if a.refused = a.at.Sub(s.allowed[s.next]) < time.Second; !a.refused {
		s.allowed[s.next] = a.at
		s.next = (s.next + 1) % limit
	}
	s.arrivals = append(s.arrivals, a)
	return a.refused
}

// seen returns all arrivals so far.
func (s *service) seen() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrivals)
}

// where returns the arrivals for which keep returns true.
func where(all []arrival, keep func(arrival) bool) (some []arrival) {
	for _, a := range all {
		if keep(a) {
			some = append(some, a)
		}
	}
	return some
}

func isAway(a arrival) bool    { return a.away }
func isRefused(a arrival) bool { return a.refused }

// most returns the most arrivals in any second; a second does not include its end.
func most(all []arrival) (n int) {
	first := 0
	for i := range all {
		for all[i].at.Sub(all[first].at) >= time.Second {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}
