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
	if !d.answer(req.Context()) {
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}, nil
}

// TestStory tells it without a network between, in virtual time.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		if err := tell(direct{s}, "http://api.example.com", s); err != nil {
			t.Error(err)
		}
	})
}
