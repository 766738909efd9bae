package main

import (
	"context"
	"net/http"
	"sync/atomic"
)

// A service is up, dead or hanging.
type service struct {
	is   atomic.Int32 // a mode
	sent atomic.Int32 // how many requests have reached it
}

type mode int32

const (
	up   mode = iota
	dead      // connections break
	hanging
)

func (m mode) String() string { return [...]string{"up", "dead", "hanging"}[m] }

func (s *service) mode() mode    { return mode(s.is.Load()) }
func (s *service) become(m mode) { s.is.Store(int32(m)) }
func (s *service) requests() int { return int(s.sent.Load()) }

// respond returns when the response is due, and reports whether there is one.
func (s *service) respond(ctx context.Context) bool {
	s.sent.Add(1)
	if s.mode() == hanging {
		<-ctx.Done()
	}
	return s.mode() == up
}

func (s *service) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	if !s.respond(req.Context()) {
		panic(http.ErrAbortHandler) // breaks the connection
	}
}
