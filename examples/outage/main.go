// Outage calls a service that dies, hangs and comes back, thirty times a second,
// and prints once a second what became of it. Its status is 0 only when the
// service got nothing but probes while it was down, and nobody waited for it.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
)

func main() {
	s := new(service)
	server := httptest.NewServer(s)
	// A kept connection that breaks makes http.Transport send a second time.
	base := &http.Transport{DisableKeepAlives: true}
	err := tell(base, server.URL, s)
	server.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}
