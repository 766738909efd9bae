package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A server lets an account use so many tokens in any period. What a request
// uses it knows only when it has answered: so it lets in whoever comes while
// there is a token left, and nobody while there is none.
//
// The header Wants says what a request will use. The answer to one with the
// header Stream tells it in the body, that to any other in the header Used.
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
		io.WriteString(w, "an answer\n")
		return
	}
	fmt.Fprintf(w, "an answer\nused %d\n", tokens)
}
