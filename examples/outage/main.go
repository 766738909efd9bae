// Outage calls a service thirty times per second, while it dies, hangs and recovers, and
// prints the results once per second. The exit status is 0 only if the service received
// nothing but probes while it was down, and no request waited for it.
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
	// If a kept connection breaks, http.Transport sends the request again.
	base := &http.Transport{DisableKeepAlives: true}
	err := runStory(base, server.URL, s)
	server.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}
