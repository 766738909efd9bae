// Retrying sends requests to a server on this machine that fails in many ways,
// and tells what became of each. Then the server goes down for everybody, and
// the retries must not make it worse. Its status is 0 only when every request
// was sent as often as is safe, and the outage was not amplified.
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
	err := tell(base, flaky.URL, down.URL)
	base.CloseIdleConnections()
	flaky.Close()
	down.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "retrying:", err)
		os.Exit(1)
	}
}
