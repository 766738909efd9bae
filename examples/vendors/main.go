// Vendors calls four services that it knows nothing about. Each tells its limit
// in another dialect, and the client keeps to it before the first 429. Its status
// is 0 only when no service had to refuse anybody.
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
	err := tell(base)
	base.CloseIdleConnections()
	s.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vendors:", err)
		os.Exit(1)
	}
}
