// Tenants shares one account among nine tenants, the first of which sends far more
// requests than the others: under the account's limit alone, and with a rule that also
// limits each tenant. The exit status is 0 only if the server never received too many
// requests, and with the rule no other tenant had to wait for the first.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

const (
	perAccount = 60 // in any second
	perTenant  = 20 // in any second, with the rule
)

var (
	greedy  = tenant{"acme", 120, 1}
	tenants = []tenant{
		greedy,
		{"birch", 1, 6},
		{"cedar", 1, 6},
		{"dogwood", 1, 6},
		{"elm", 1, 6},
		{"fir", 1, 6},
		{"ginkgo", 1, 6},
		{"hazel", 1, 6},
		{"ivy", 1, 6},
	}
)

// A tenant sends bursts of requests, half a second apart.
type tenant struct {
	name         string
	burst, times int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tenants:", err)
		os.Exit(1)
	}
}

func run() error {
	fmt.Printf("\n  An account may send %d requests in any second. Acme sends %d at once; then eight\n", perAccount, greedy.burst)
	fmt.Print("  other tenants send one every half second. That takes about 5 s.\n\n")

	// Both runs take place at the same time, each with its own server.
	var alone, ruled *result
	var both sync.WaitGroup
	both.Go(func() { alone = onServer(policy()) })
	both.Go(func() { ruled = onServer(policy(tenantRule)) })
	both.Wait()

	fmt.Print("  Starts in each second, and the longest wait:\n\n")
	fmt.Printf("  %-8s   %-34s   %s\n", "", "under the account's limit alone", fmt.Sprintf("with %d per second for each tenant", perTenant))
	for _, t := range tenants {
		fmt.Printf("  %-8s   %s   %s\n", t.name, alone.row(t.name), ruled.row(t.name))
	}
	for _, r := range []*result{alone, ruled} {
		if err := r.check(); err != nil {
			return err
		}
	}
	fmt.Printf("\n  With the rule, no tenant but Acme waited longer than %.2f s; without it, %.2f s.\n\n",
		ruled.longestOfOthers().Seconds(), alone.longestOfOthers().Seconds())
	if most := time.Second; ruled.longestOfOthers() > most {
		return fmt.Errorf("with the rule, another tenant waited for %v, want at most %v", ruled.longestOfOthers(), most)
	}
	return nil
}

// headStart is how much earlier than all others the greedy tenant begins.
const headStart = 20 * time.Millisecond

// strict returns a client's limit for a server that counts arrivals.
func strict(n int64) limiter.Limit { return limiter.Limit{N: n, Per: time.Second, Strict: true} }

var tenantRule = headway.Rule{Name: "tenant", Limit: strict(perTenant), Key: headway.ByHeader("X-Tenant")}

// policy returns the account's policy, with further rules.
func policy(rules ...headway.Rule) headway.Policy {
	return headway.Policy{Hosts: []string{"*"}, Limits: []limiter.Limit{strict(perAccount)}, Rules: rules}
}

// newVendor returns a server with the account's limit.
func newVendor() *headwaytest.Vendor {
	return &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(perAccount)}}
}

// onServer runs all tenants against a new server.
func onServer(p headway.Policy) *result {
	vendor := newVendor()
	vendor.MaxLatency = 10 * time.Millisecond
	server := httptest.NewServer(vendor)
	defer server.Close()
	return measure(p, nil, server.URL)
}

// measure runs all tenants against url, over base, under a policy.
func measure(p headway.Policy, base http.RoundTripper, url string) *result {
	r := newResult()
	transport, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{p}, Observer: r})
	if err != nil {
		r.fail(err)
		return r
	}
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for _, t := range tenants {
		for i := range t.times {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / 2)
				for range t.burst {
					all.Go(func() { r.ask(client, url, t.name) })
				}
			})
		}
		if t == greedy {
			time.Sleep(headStart)
		}
	}
	all.Wait()
	return r
}
