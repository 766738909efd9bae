// Observed sends a burst to a service, is paused by it, and passes through an outage of
// the service and of the store that keeps a budget. It prints why slow requests were
// slow, and the metrics at the end. With -serve localhost:6060 it goes on running, and
// serves the page at /debug/headway and the metrics for Prometheus at /metrics. The exit
// status is 0 only if the metrics count exactly the requests that were sent.
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
	// If a kept connection breaks, http.Transport sends the request again.
	o, err := observe(&http.Transport{DisableKeepAlives: true}, os.Stdout)
	if err != nil {
		return err
	}
	if address == "" {
		return runStory(o, s, server.URL, os.Stdout)
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
		if err := runStory(o, s, server.URL, os.Stdout); err != nil {
			return err
		}
	}
}
