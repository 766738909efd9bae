package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/headway-go/headway"
)

// A caller sends requests that use tokens.
type caller struct {
	url  string
	http *http.Client
}

// usedInHeader is a Rule.Settle: it reads from a response what the request has used.
func usedInHeader(resp *http.Response) (int64, bool) {
	used, err := strconv.ParseInt(resp.Header.Get("Used"), 10, 64)
	return used, err == nil
}

// ask sends a request that is estimated at some number of tokens and uses another, which
// the response's header announces. It returns the number used.
func (c *caller) ask(name string, estimate, wants int64) (int64, error) {
	resp, err := c.send(name, estimate, wants, false)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	used, ok := usedInHeader(resp)
	if !ok {
		return 0, fmt.Errorf("got status %s", resp.Status)
	}
	return used, nil
}

// stream is like ask, for a response that announces the number in its body.
func (c *caller) stream(name string, estimate, wants int64) (int64, error) {
	resp, err := c.send(name, estimate, wants, true)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var used int64
	if _, err := fmt.Sscanf(string(text), "a response\nused %d\n", &used); err != nil {
		return 0, fmt.Errorf("got status %s: %q", resp.Status, text)
	}
	return used, headway.Settle(resp, "tokens", used)
}

func (c *caller) send(name string, estimate, wants int64, stream bool) (*http.Response, error) {
	ctx := headway.WithCall(named(name), headway.Call{Cost: estimate})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Wants", strconv.FormatInt(wants, 10))
	if stream {
		req.Header.Set("Stream", "yes")
	}
	return c.http.Do(req)
}
