// Fanout imports items from three services at once, each with a limit of its own, through
// one client. One service is slow, and does not hold up the others. The exit status is 0
// only if no service received too many requests, and each import took only as long as
// its own limit requires.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// A service is one host to import from.
type service struct {
	name  string
	about string
	items int
	ideal time.Duration // from the first start to the last response, by the limit alone

	limit    limiter.Limit // of the service, and of the client's policy
	inFlight int           // zero: no cap
	works    time.Duration // how long it works on a response

	vendor *headwaytest.Vendor
	host   string
	done   int           // imported items
	took   time.Duration // the time until the last of them
}

func strict(n int64) limiter.Limit { return limiter.Limit{N: n, Per: time.Second, Strict: true} }

func services() []*service {
	return []*service{
		{name: "catalog", about: "60 per second", items: 180, ideal: 2 * time.Second, limit: strict(60)},
		{name: "prices", about: "20 per second", items: 80, ideal: 3 * time.Second, limit: strict(20)},
		{
			name: "archive", about: "3 at a time, slow", items: 15, ideal: 4 * time.Second,
			limit: strict(20), inFlight: 3, works: 800 * time.Millisecond,
		},
	}
}

// latency is the longest latency of the network, each way.
const latency = 10 * time.Millisecond

func main() {
	if err := run(services()); err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func run(all []*service) error {
	for _, s := range all {
		server := httptest.NewServer(s.start())
		defer server.Close()
		s.host = strings.TrimPrefix(server.URL, "http://")
	}
	client, err := newClient(nil, all)
	if err != nil {
		return err
	}
	fmt.Print("\n  One client imports from three services. Each has its own limit, and one is slow.\n\n")
	if err := importAll(client, all, newProgress(all)); err != nil {
		return err
	}
	return report(all)
}

// newClient returns a client over base that stays within each service's limit.
func newClient(base http.RoundTripper, all []*service) (*http.Client, error) {
	var policies []headway.Policy
	for _, s := range all {
		policies = append(policies, headway.Policy{
			Name:        s.name,
			Hosts:       []string{s.host},
			Limits:      []limiter.Limit{s.limit},
			MaxInFlight: s.inFlight,
		})
	}
	transport, err := headway.NewTransport(base, headway.Config{Policies: policies})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// start makes the service.
func (s *service) start() *headwaytest.Vendor {
	s.vendor = &headwaytest.Vendor{
		Limits:     []limiter.Limit{s.limit},
		MaxLatency: latency,
		Script: func(_ headwaytest.Arrival, r *headwaytest.Reply) {
			r.After = s.works
			r.Body = &headwaytest.Body{Text: "an item\n"}
		},
	}
	return s.vendor
}

// importAll requests every item of every service at once: requests that must wait do so
// in the line of their own host.
func importAll(client *http.Client, all []*service, show progress) error {
	type imported struct {
		from *service
		err  error
	}
	total := 0
	for _, s := range all {
		total += s.items
	}
	items := make(chan imported, total)
	begin := time.Now()
	var calls sync.WaitGroup
	for _, s := range all {
		for i := range s.items {
			calls.Go(func() { items <- imported{s, get(client, fmt.Sprintf("http://%s/items/%d", s.host, i))} })
		}
	}
	defer calls.Wait()

	defer show.end()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for total > 0 {
		select {
		case item := <-items:
			if item.err != nil {
				return item.err
			}
			total--
			item.from.done++
			item.from.took = time.Since(begin)
			show.imported(item.from)
		case <-tick.C:
			show.tick(time.Since(begin))
		}
	}
	return nil
}

func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// late is how much longer than its ideal an import may take, because of latencies in each
// period and other load on the machine.
const late = 1500 * time.Millisecond

func report(all []*service) error {
	fmt.Printf("\n  %-10s %6s %6s %10s %10s\n", "", "items", "429", "ideal", "took")
	for _, s := range all {
		_, refused := s.vendor.Count()
		fmt.Printf("  %-10s %6d %6d %8.2f s %8.2f s\n", s.name, s.done, refused, s.ideal.Seconds(), s.took.Seconds())
	}
	fmt.Println()
	for _, s := range all {
		if _, refused := s.vendor.Count(); refused > 0 {
			return fmt.Errorf("%s refused %d requests with a 429", s.name, refused)
		}
		if s.took > s.ideal+late {
			return fmt.Errorf("%s took %v, want at most %v", s.name, s.took, s.ideal+late)
		}
	}
	fmt.Println("  The slow service did not hold up the others, and there was no 429.")
	fmt.Println()
	return nil
}
