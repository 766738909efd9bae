package headwaytest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// A Vendor behind a real server, with a budget for each tenant.
func ExampleVendor_ServeHTTP() {
	perTenant := headway.Rule{
		Name:  "tenant",
		Limit: limiter.PerHour(1),
		Key:   headway.ByHeader("X-Tenant"),
	}
	vendor := &headwaytest.Vendor{Rules: []headway.Rule{perTenant}}
	server := httptest.NewServer(vendor)
	defer server.Close()

	for _, tenant := range []string{"a", "b", "a"} {
		req, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("X-Tenant", tenant)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(tenant, resp.Status)
	}
	arrived, refused := vendor.Count()
	fmt.Println(arrived, "arrived,", refused, "refused")
	// Output:
	// a 200 OK
	// b 200 OK
	// a 429 Too Many Requests
	// 3 arrived, 1 refused
}

// A vendor that has another budget for writing, and says in a header of its own
// what it wants.
func ExampleVendor() {
	vendor := &headwaytest.Vendor{
		Limits: []limiter.Limit{limiter.PerSecond(10)},
		Rules: []headway.Rule{{
			Methods: []string{"POST"},
			Path:    "/items/",
			Limit:   limiter.Every(1500 * time.Millisecond),
		}},
		Script: func(a headwaytest.Arrival, r *headwaytest.Reply) {
			r.Header.Set("X-Request-Number", fmt.Sprint(a.N))
			if a.Wait == 0 {
				r.Body = &headwaytest.Body{Text: "stored\n"}
			}
		},
	}
	client := &http.Client{Transport: vendor}
	for range 2 {
		resp, err := client.Post("https://api.example.com/items/1", "", nil)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, resp.Header)
	}
	// Output:
	// 200 OK map[X-Request-Number:[0]]
	// 429 Too Many Requests map[Retry-After:[2] X-Request-Number:[1]]
}

// One base transport for two services.
func ExampleByHost() {
	base := headwaytest.ByHost{
		"open.example.com": new(headwaytest.Vendor),
		"shut.example.com": &headwaytest.Vendor{Limits: []limiter.Limit{limiter.Blocked()}}, // admits nothing
	}
	client := &http.Client{Transport: base}
	for _, host := range []string{"open.example.com", "shut.example.com", "no.example.com"} {
		resp, err := client.Get("https://" + host + "/")
		if err != nil {
			fmt.Println(err)
			continue
		}
		resp.Body.Close()
		fmt.Println(host, resp.Status)
	}
	// Output:
	// open.example.com 200 OK
	// shut.example.com 429 Too Many Requests
	// Get "https://no.example.com/": lookup no.example.com: no such host
}

// A function that must close the bodies it gets.
func ExampleBody() {
	body := &headwaytest.Body{Text: "hello"}
	base := &headwaytest.Vendor{Script: func(_ headwaytest.Arrival, r *headwaytest.Reply) { r.Body = body }}
	leaks := func(client *http.Client) {
		resp, err := client.Get("https://api.example.com/")
		if err != nil {
			panic(err)
		}
		resp.Body.Read(make([]byte, 3))
	}

	leaks(&http.Client{Transport: base})

	fmt.Println("read:", body.BytesRead(), "closed:", body.Closed())
	// Output: read: 3 closed: false
}
