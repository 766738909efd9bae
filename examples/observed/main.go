// Observed sends a service a burst, is paused by it, and lives through its outage
// and that of the store that keeps a budget. It prints why each slow request was
// slow, and the metrics at the end. With -serve localhost:6060 it goes on, and
// serves the page at /debug/headway and the metrics for Prometheus at /metrics. Its
// status is 0 only when what was counted is what was sent.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
)

func main() {
	serve := flag.String("serve", "", "go on, and serve the page and the metrics at this `address`")
	flag.Parse()
	if err := run(*serve); err != nil {
		fmt.Fprintln(os.Stderr, "observed:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	s := new(service)
	server := httptest.NewServer(s)
	defer server.Close()
	// A kept connection that breaks makes http.Transport send a second time.
	o, err := observe(&http.Transport{DisableKeepAlives: true}, os.Stdout)
	if err != nil {
		return err
	}
	if address == "" {
		return tell(o, s, server.URL, os.Stdout)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("\n  The page: http://%s/debug/headway, the metrics: http://%[1]s/metrics\n", listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- http.Serve(listener, o.handler()) }()
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		if err := tell(o, s, server.URL, os.Stdout); err != nil {
			return err
		}
	}
}
