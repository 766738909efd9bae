package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// direct is a base transport that calls a handler, 10 ms away.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(5 * time.Millisecond)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	time.Sleep(5 * time.Millisecond)
	return w.Result(), nil
}

// TestStory runs the story in virtual time: no request is refused, or waits longer than
// the service's own limit requires.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := runStory(direct{newServer()}); err != nil {
			t.Error(err)
		}
		if got := time.Since(begin); got > 16*time.Second {
			t.Errorf("it took %v", got)
		}
	})
}

// TestServer checks that each service refuses requests that come too early.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for _, v := range vendors {
			for i := range v.most + 1 {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest("GET", "http://"+v.host+"/", nil))
				if refused := w.Code == http.StatusTooManyRequests; refused != (i == v.most) {
					t.Errorf("%s: request %d: got status %d", v.name, i, w.Code)
				}
			}
		}
	})
}
