package headwaytest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

func TestZeroVendor(t *testing.T) {
	body := &headwaytest.Body{Text: "ask"}
	req, err := http.NewRequest("POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(headwaytest.Vendor).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Status != "200 OK" || resp.Header == nil || resp.Body != http.NoBody || resp.Request != req {
		t.Errorf("got %+v, want an empty answer of 200 to the request", resp)
	}
	if body.BytesRead() != 3 || !body.Closed() {
		t.Errorf("request body: read %d, closed %t, want 3, true", body.BytesRead(), body.Closed())
	}
}

// TestVendorAllOrNothing: a request that one budget refuses counts in no other.
func TestVendorAllOrNothing(t *testing.T) {
	v := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerHour(2), limiter.PerMinute(2)}, Rules: []headway.Rule{
		{Path: "/narrow", Limit: limiter.PerHour(1)},
	}}
	var got []int
	for _, path := range []string{"/narrow", "/narrow", "/narrow", "/wide", "/wide"} {
		got = append(got, status(t, v, "https://api.example.com"+path))
	}
	if want := []int{200, 429, 429, 200, 429}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if arrived, refused := v.Count(); arrived != 5 || refused != 3 {
		t.Errorf("got %d arrived, %d refused, want 5, 3", arrived, refused)
	}
}

// TestVendorBudgets: whose budget a request spends.
func TestVendorBudgets(t *testing.T) {
	const a, b = "https://a.example.com", "https://b.example.com"
	one := []limiter.Limit{limiter.PerHour(1)}
	perTenant := []headway.Rule{{Limit: limiter.PerHour(1), Key: headway.ByHeader("Tenant")}}
	post := []headway.Rule{{Methods: []string{"POST"}, Limit: limiter.Blocked()}}
	broken := []headway.Rule{{Limit: limiter.Blocked(), Cost: func(*http.Request) (int64, error) { return -1, nil }}}
	for name, tt := range map[string]struct {
		vendor    *headwaytest.Vendor
		url, then string
		headers   []string // of the second
		want      int      // for the second
	}{
		"one host":                   {&headwaytest.Vendor{Limits: one}, a, a, nil, 429},
		"spelled otherwise":          {&headwaytest.Vendor{Limits: one}, a, "https://A.example.COM.:443/b", nil, 429},
		"another port":               {&headwaytest.Vendor{Limits: one}, a, a + ":8443", nil, 200},
		"port 443 of http":           {&headwaytest.Vendor{Limits: one}, "http://a.example.com", "http://a.example.com:443", nil, 200},
		"two hosts":                  {&headwaytest.Vendor{Limits: one}, a, b, nil, 200},
		"two hosts shared":           {&headwaytest.Vendor{Limits: one, Shared: true}, a, b, nil, 429},
		"an IPv6 address":            {&headwaytest.Vendor{Limits: one}, "https://[::1]", "https://[::1]:443", nil, 429},
		"a key of its own":           {&headwaytest.Vendor{Rules: perTenant}, a, a, []string{"Tenant", "b"}, 200},
		"the same key":               {&headwaytest.Vendor{Rules: perTenant}, a, a, []string{"Tenant", "a"}, 429},
		"the same key elsewhere":     {&headwaytest.Vendor{Rules: perTenant}, a, b, []string{"Tenant", "a"}, 200},
		"the same key shared":        {&headwaytest.Vendor{Rules: perTenant, Shared: true}, a, b, []string{"Tenant", "a"}, 429},
		"no key":                     {&headwaytest.Vendor{Rules: perTenant}, a, a, nil, 200},
		"another method":             {&headwaytest.Vendor{Rules: post}, a, a, nil, 200},
		"a cost that cannot be told": {&headwaytest.Vendor{Rules: broken}, a, a, nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := status(t, tt.vendor, tt.url, "Tenant", "a"); got != 200 {
				t.Errorf("the first: got %d, want 200", got)
			}
			if got := status(t, tt.vendor, tt.then, tt.headers...); got != tt.want {
				t.Errorf("the second: got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestVendorPaths(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"", "/any", true},
		{"/", "/", true},
		{"/", "/any/thing", true},
		{"/", "", true},
		{"/{$}", "/", true},
		{"/{$}", "/any", false},
		{"/search", "/search", true},
		{"/search", "/search/", false},
		{"/search", "/searches", false},
		{"/search", "/", false},
		{"/repos/", "/repos/a/b", true},
		{"/repos/", "/repos/", true},
		{"/repos/", "/repos", false},
		{"/repos/{$}", "/repos/", true},
		{"/repos/{$}", "/repos/a", false},
		{"/repos/{owner}/{name}", "/repos/a/b", true},
		{"/repos/{owner}/{name}", "/repos/a", false},
		{"/repos/{owner}/{name}", "/repos/a/", false},
		{"/repos/{owner}/{name}", "/repos/a/b/c", false},
		{"/repos/{owner}/{name}", "/repos/a%2Fb/c", true},
		{"/files/{path...}", "/files/a/b", true},
		{"/files/{path...}", "/files/", true},
		{"/a b", "/a%20b", true},
	} {
		v := &headwaytest.Vendor{Rules: []headway.Rule{{Path: tt.pattern, Limit: limiter.Blocked()}}}
		if got := status(t, v, "https://api.example.com"+tt.path) == 429; got != tt.want {
			t.Errorf("pattern %q, path %q: matches %t, want %t", tt.pattern, tt.path, got, tt.want)
		}
	}
}

func TestVendorRetryAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		vendor *headwaytest.Vendor
		want   []string
	}{
		"a whole second": {&headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(1)}}, []string{"1"}},
		"rounded up":     {&headwaytest.Vendor{Limits: []limiter.Limit{{N: 1, Per: time.Second + 1}}}, []string{"2"}},
		"the longest":    {&headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerHour(1), limiter.PerMinute(1)}}, []string{"3600"}},
		"never":          {&headwaytest.Vendor{Limits: []limiter.Limit{limiter.Blocked()}}, nil},
		"not wanted":     {&headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(1)}, NoRetryAfter: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status(t, tt.vendor, url)
				resp, err := tt.vendor.RoundTrip(newRequest(t, t.Context(), url))
				if err != nil {
					t.Fatal(err)
				}
				if got := resp.Header.Values("Retry-After"); resp.StatusCode != 429 || !slices.Equal(got, tt.want) {
					t.Errorf("got %d with Retry-After %q, want 429 with %q", resp.StatusCode, got, tt.want)
				}
			})
		})
	}
}

// TestVendorLatency: a request arrives one latency after its start and is
// answered one later.
func TestVendorLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		v := &headwaytest.Vendor{Latency: 30 * time.Millisecond, Script: func(a headwaytest.Arrival, r *headwaytest.Reply) {
			if got := a.At.Sub(begin); got != 30*time.Millisecond {
				t.Errorf("arrived at %v, want 30 ms", got)
			}
			r.After = time.Second
		}}
		status(t, v, url)
		if got := time.Since(begin); got != 1060*time.Millisecond {
			t.Errorf("answered at %v, want 1.06 s", got)
		}
	})
}

// TestVendorRandomLatency: between both bounds, in both directions, and the same
// for one Seed.
func TestVendorRandomLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draw := func(seed uint64) (all []time.Duration) {
			v := &headwaytest.Vendor{Latency: time.Second, MaxLatency: time.Second + 3, Seed: seed}
			v.Script = func(a headwaytest.Arrival, _ *headwaytest.Reply) { all = append(all, time.Duration(a.At.UnixNano())) }
			for range 100 {
				begin := time.Duration(time.Now().UnixNano())
				status(t, v, url)
				end := time.Duration(time.Now().UnixNano())
				all[len(all)-1] -= begin
				all = append(all, end-begin-all[len(all)-1])
			}
			return all
		}
		seen := make(map[time.Duration]bool)
		first := draw(1)
		for _, d := range first {
			seen[d] = true
		}
		for d := range time.Duration(4) {
			if !seen[time.Second+d] {
				t.Errorf("no latency of 1 s and %d ns", d)
			}
		}
		if len(seen) != 4 {
			t.Errorf("got the latencies %v, want four, from 1 s to 1 s and 3 ns", seen)
		}
		if !slices.Equal(first, draw(1)) {
			t.Error("the same seed drew other latencies")
		}
		if slices.Equal(first, draw(2)) {
			t.Error("another seed drew the same latencies")
		}
	})
}

// TestVendorCancelled: where the context ends decides whether a request arrives.
func TestVendorCancelled(t *testing.T) {
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		after   time.Duration
		arrived int
	}{
		"before":           {0, 0},
		"on the way there": {time.Second / 2, 0},
		"at work":          {3 * time.Second / 2, 1},
		"on the way back":  {5 * time.Second / 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), tt.after, gone)
				defer cancel()
				v := script(headwaytest.Reply{After: time.Second})
				v.Latency = time.Second
				begin := time.Now()
				resp, err := v.RoundTrip(newRequest(t, ctx, url))
				if resp != nil || err != gone || time.Since(begin) != tt.after {
					t.Errorf("got %v, %v at %v, want the cause at %v", resp, err, time.Since(begin), tt.after)
				}
				if arrived, _ := v.Count(); arrived != tt.arrived {
					t.Errorf("got %d arrived, want %d", arrived, tt.arrived)
				}
			})
		})
	}
}

func TestVendorScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := errors.New("connection reset")
		v := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerHour(3)}}
		v.Script = func(a headwaytest.Arrival, r *headwaytest.Reply) {
			if text, err := io.ReadAll(a.Request.Body); string(text) != "ask" || err != nil {
				t.Errorf("got the request body %q, %v", text, err)
			}
			switch a.N {
			case 0:
				r.Status = 503
				r.Header.Set("Retry-After", "7")
				r.Body = &headwaytest.Body{Text: "later"}
			case 1:
				r.Err = reset
			case 2:
				r.Hang = true
			case 3:
				if r.Status != 429 || a.Wait <= 0 {
					t.Errorf("got status %d, wait %v, want a refusal", r.Status, a.Wait)
				}
				r.Status = 200
			case 4:
				r.Panic = "at the disco"
			}
		}
		send := func(ctx context.Context) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("ask"))
			if err != nil {
				t.Fatal(err)
			}
			return v.RoundTrip(req)
		}

		resp, err := send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" || resp.ContentLength != 5 || string(text) != "later" || err != nil {
			t.Errorf("got %+v, %q, %v", resp, text, err)
		}
		if resp, err := send(t.Context()); resp != nil || err != reset {
			t.Errorf("got %v, %v, want the error", resp, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if resp, err := send(ctx); resp != nil || err != context.DeadlineExceeded || time.Since(begin) != time.Minute {
			t.Errorf("got %v, %v at %v, want the context's error after a minute", resp, err, time.Since(begin))
		}
		if resp, err := send(t.Context()); err != nil || resp.StatusCode != 200 {
			t.Errorf("got %v, %v, want a refusal turned into 200", resp, err)
		}
		func() {
			defer func() {
				if p := recover(); p != "at the disco" {
					t.Errorf("recovered %v, want the panic", p)
				}
			}()
			send(t.Context())
		}()
		if arrived, refused := v.Count(); arrived != 5 || refused != 2 {
			t.Errorf("got %d arrived, %d refused, want 5, 2", arrived, refused)
		}
	})
}

func TestVendorHead(t *testing.T) {
	v := script(headwaytest.Reply{Body: &headwaytest.Body{Text: "12345"}})
	req := newRequest(t, t.Context(), url)
	req.Method = "HEAD"
	resp, err := v.RoundTrip(req)
	if err != nil || resp.ContentLength != 5 || resp.Body != http.NoBody {
		t.Errorf("got %+v, %v, want a length of 5 and no body", resp, err)
	}
}

func TestVendorWithoutHost(t *testing.T) {
	body := new(headwaytest.Body)
	if resp, err := new(headwaytest.Vendor).RoundTrip(&http.Request{Body: body}); resp != nil || err == nil || !body.Closed() {
		t.Errorf("got %v, %v, closed %t, want an error and a closed body", resp, err, body.Closed())
	}
}

func TestVendorBrokenRequestBody(t *testing.T) {
	broken := errors.New("broken")
	req, err := http.NewRequest("POST", url, &headwaytest.Body{Text: "ask", Err: broken})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := new(headwaytest.Vendor).RoundTrip(req); resp != nil || err != broken {
		t.Errorf("got %v, %v, want the body's error", resp, err)
	}
}

func TestVendorInvalidLimit(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "headwaytest: a limit of the Vendor: ") {
			t.Errorf("recovered %q, want a panic about the limit", p)
		}
	}()
	status(t, &headwaytest.Vendor{Limits: []limiter.Limit{{N: 1}}}, url)
}

func TestNoRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, fake := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerSecond(1)}}, new(fakeTB)
		v.NoRefusals(fake)
		time.Sleep(time.Minute)
		status(t, v, url)
		v.NoRefusals(fake)
		fake.passes(t)
		time.Sleep(time.Second - 1)
		status(t, v, url)
		time.Sleep(time.Nanosecond)
		status(t, v, url)
		v.NoRefusals(fake)
		fake.fails(t, `headwaytest: 1 of 3 requests were refused by the vendor's limits:
              0s  GET api.example.com/items
  > 999.999999ms  GET api.example.com/items
              1s  GET api.example.com/items
`)
	})
}

// TestVendorServes: the same over a real server.
func TestVendorServes(t *testing.T) {
	replies := []headwaytest.Reply{
		{Status: 418, Header: http.Header{"X-Tea": {"mint"}}, Body: &headwaytest.Body{Text: "pot", Delay: time.Millisecond}},
		{Err: errors.New("cut")},
		{Panic: http.ErrAbortHandler},
		{Hang: true},
		{Body: &headwaytest.Body{Text: "broken", Err: errors.New("off")}},
		{Body: &headwaytest.Body{Text: "unseen"}}, // for HEAD
	}
	hanging := make(chan struct{})
	v := &headwaytest.Vendor{
		Limits: []limiter.Limit{limiter.PerHour(int64(len(replies)))},
		Script: func(a headwaytest.Arrival, r *headwaytest.Reply) {
			if a.N == 3 {
				close(hanging)
			}
			if a.N < len(replies) {
				status, header := r.Status, r.Header
				*r = replies[a.N]
				r.Status = max(status, r.Status)
				if r.Header == nil {
					r.Header = header
				}
			}
		},
	}
	server := httptest.NewServer(v)
	defer server.Close()
	send := func(ctx context.Context, method string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, server.URL, strings.NewReader("ask"))
		if err != nil {
			t.Fatal(err)
		}
		return server.Client().Do(req)
	}

	resp, err := send(t.Context(), "POST")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 418 || resp.Header.Get("X-Tea") != "mint" || resp.ContentLength != 3 || string(text) != "pot" || err != nil {
		t.Errorf("got %+v, %q, %v", resp, text, err)
	}
	for range 2 {
		if resp, err := send(t.Context(), "POST"); err == nil {
			t.Errorf("got %+v, want an error", resp)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hanging
		cancel()
	}()
	if resp, err := send(ctx, "POST"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v, want the context's error", resp, err)
	}
	resp, err = send(t.Context(), "POST")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); string(text) != "broken" || err == nil {
		t.Errorf("got %q, %v, want an error after the text", text, err)
	}
	resp.Body.Close()
	if !replies[4].Body.Closed() {
		t.Error("the Vendor did not close its body")
	}
	resp, err = send(t.Context(), "HEAD")
	if err != nil || resp.StatusCode != 200 || resp.ContentLength != 6 {
		t.Errorf("got %+v, %v, want a length of 6", resp, err)
	}
	resp, err = send(t.Context(), "POST")
	if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %+v, %v, want a refusal", resp, err)
	}
}

// TestVendorManyAtOnce: exactly N of many goroutines are let in.
func TestVendorManyAtOnce(t *testing.T) {
	v := &headwaytest.Vendor{Limits: []limiter.Limit{limiter.PerHour(50)}, MaxLatency: time.Millisecond}
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			if _, err := v.RoundTrip(newRequest(t, t.Context(), url)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if arrived, refused := v.Count(); arrived != 500 || refused != 450 {
		t.Errorf("got %d arrived, %d refused, want 500, 450", arrived, refused)
	}
}

// TestStrictIsNeverRefused is S17: under Strict a server that counts arrivals
// never sees one too many, however the network delays, and the last of k x N
// starts within k periods plus k longest latencies. Without Strict it does see
// them, which proves that the Vendor would tell.
func TestStrictIsNeverRefused(t *testing.T) {
	const batches = 5
	run := func(t *testing.T, limit limiter.Limit, latency time.Duration, seed uint64) (refused int, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			v := &headwaytest.Vendor{Limits: []limiter.Limit{limit}, MaxLatency: latency, Seed: seed}
			client, err := headway.Wrap(&http.Client{Transport: v}, limit)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			var all sync.WaitGroup
			for range batches * limit.N {
				all.Go(func() { status(t, client.Transport, url) })
			}
			all.Wait()
			took = time.Since(begin)
			_, refused = v.Count()
		})
		return refused, took
	}
	rapid.Check(t, func(rt *rapid.T) {
		limit := limiter.Limit{
			N:      rapid.Int64Range(1, 10).Draw(rt, "n"),
			Per:    time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(rt, "per")),
			Strict: true,
		}
		latency := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(rt, "latency"))
		refused, took := run(t, limit, latency, rapid.Uint64().Draw(rt, "seed"))
		if refused > 0 {
			rt.Errorf("%d refused, want none", refused)
		}
		// A latency is a round trip here, and the last start is answered one later.
		if most := (batches-1)*limit.Per + (batches-1)*2*latency + 2*latency; took > most {
			rt.Errorf("took %v, want at most %v", took, most)
		}
	})
	if refused, _ := run(t, limiter.PerSecond(50), 20*time.Millisecond, 1); refused == 0 {
		t.Error("without Strict none was refused; the Vendor sees nothing")
	}
}
