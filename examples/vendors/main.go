// Vendors calls four services that it knows nothing about. Each announces its limit in
// another dialect, and the client stays within it, so that there is no 429. The exit
// status is 0 only if no service had to refuse a request.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
)

func main() {
	s := httptest.NewServer(newServer())
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.Listener.Addr().String()) // whatever the host's name is
	}}
	err := runStory(base)
	base.CloseIdleConnections()
	s.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vendors:", err)
		os.Exit(1)
	}
}
