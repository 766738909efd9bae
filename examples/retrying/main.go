// Retrying sends requests to a server on this machine that fails in many ways, and
// prints the result of each. Then a server is down for all requests, and retries must
// not make that worse. The exit status is 0 only if every request was sent as often as
// is safe, and retries did not amplify the outage.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
)

func main() {
	flaky, down := httptest.NewServer(new(server)), httptest.NewServer(new(server))
	base := new(http.Transport)
	err := runStory(base, flaky.URL, down.URL)
	base.CloseIdleConnections()
	flaky.Close()
	down.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "retrying:", err)
		os.Exit(1)
	}
}
