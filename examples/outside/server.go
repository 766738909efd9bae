package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A server allows an account a number of tokens in any period. It knows what a request
// uses only after its response, so that it allows requests while there is a token left,
// and refuses them while there is none.
//
// A request's header Wants is what it will use. The response to a request with the header
// Stream announces the number in its body, and any other response in its header Used.
type server struct {
	mu   sync.Mutex // guards following fields
	uses []use
}

// A use is tokens used at an arrival.
type use struct {
	at     time.Time
	tokens int64
}

// allow counts tokens, unless there is none left.
func (s *server) allow(tokens int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var used int64
	for _, u := range s.uses {
		if now.Sub(u.at) < period {
			used += u.tokens
		}
	}
	if used >= budget {
		return false
	}
	s.uses = append(s.uses, use{now, tokens})
	return true
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	tokens, err := strconv.ParseInt(req.Header.Get("Wants"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !s.allow(tokens) {
		http.Error(w, "no tokens left", http.StatusTooManyRequests)
		return
	}
	if req.Header.Get("Stream") == "" {
		w.Header().Set("Used", strconv.FormatInt(tokens, 10))
		io.WriteString(w, "a response\n")
		return
	}
	fmt.Fprintf(w, "a response\nused %d\n", tokens)
}
