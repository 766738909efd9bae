package main

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
)

// direct is a base transport that calls the service.
type direct struct{ *service }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if !d.respond(req.Context()) {
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}, nil
}

// TestStory runs the story in virtual time, without a network.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		if err := runStory(direct{s}, "http://api.example.com", s); err != nil {
			t.Error(err)
		}
	})
}
