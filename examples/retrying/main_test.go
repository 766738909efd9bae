package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// direct is a base transport that calls a handler.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			resp, err = nil, io.ErrUnexpectedEOF
		default:
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w.Result(), nil
}

// byHost gives each host a server.
type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Host].RoundTrip(req)
}

// TestStory runs the story in virtual time, without a network.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := byHost{"flaky.test": direct{new(server)}, "down.test": direct{new(server)}}
		if err := runStory(base, "http://flaky.test", "http://down.test"); err != nil {
			t.Error(err)
		}
	})
}

// TestServer checks that the server fails as its paths say.
func TestServer(t *testing.T) {
	s := direct{new(server)}
	for i, want := range []int{503, 429, 0, 200, 200} {
		resp, err := s.RoundTrip(httptest.NewRequest("GET", "http://flaky.test/down/busy/cut/ok", nil))
		if want == 0 && err == io.ErrUnexpectedEOF {
			continue
		}
		if err != nil || resp.StatusCode != want {
			t.Errorf("attempt %d: got %v, %v, want %d", i, resp, err, want)
		}
	}
	if resp, err := s.RoundTrip(httptest.NewRequest("GET", "http://flaky.test/missing", nil)); err != nil || resp.StatusCode != 404 {
		t.Errorf("got %v, %v, want 404", resp, err)
	}
}
