package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// A server handles the n-th attempt of a request as the n-th word of its path says, and
// all further attempts as the last word says.
type server struct {
	mu   sync.Mutex // guards following fields
	sent map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	words := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	name := req.Header.Get("Name")
	s.mu.Lock()
	if s.sent == nil {
		s.sent = make(map[string]int)
	}
	word := words[min(s.sent[name], len(words)-1)]
	s.sent[name]++
	s.mu.Unlock()

	switch word {
	case "ok":
		io.WriteString(w, "hello\n")
	case "cut":
		panic(http.ErrAbortHandler) // cuts the connection
	case "busy":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case "down":
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "come back later\n")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
