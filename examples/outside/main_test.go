package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// direct is a base transport that calls a handler.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w.Result(), nil
}

// TestStory runs the story without a network: the last request starts exactly when the
// debt has aged out.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := runStory(direct{new(server)}, "http://api.example.com"); err != nil {
			t.Error(err)
		}
		if got := time.Since(begin); got != 3*time.Second {
			t.Errorf("the last request started at %v, want 3s", got)
		}
	})
}

// TestServer checks that the server refuses requests that come too early.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin := new(server), time.Now()
		for _, step := range []struct {
			at     time.Duration
			tokens int64
			want   bool
		}{
			{0, budget - 1, true},
			{time.Second, 500, true}, // one token is left
			{time.Second, 1, false},
			{period - 1, 1, false},
			{period, budget - 500, true}, // the first are one period old
			{period, 1, false},
			{time.Second + period, 1, true},
		} {
			time.Sleep(time.Until(begin.Add(step.at)))
			if got := s.allow(step.tokens); got != step.want {
				t.Errorf("%d tokens at %v: allowed %t, want %t", step.tokens, step.at, got, step.want)
			}
		}
	})
}
