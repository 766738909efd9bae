package headway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A look is what of a request may not change.
type look struct {
	req     http.Request
	header  http.Header
	url     url.URL
	getBody uintptr
}

func lookAt(req *http.Request) look {
	l := look{req: *req, header: req.Header.Clone(), url: *req.URL, getBody: reflect.ValueOf(req.GetBody).Pointer()}
	l.req.GetBody = nil
	return l
}

// after runs f and returns what it panicked with; Goexit is "goexit".
func after(f func()) (end any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		normal := false
		defer func() {
			if p := recover(); p != nil {
				end = p
			} else if !normal {
				end = "goexit"
			}
		}()
		f()
		normal = true
	}()
	<-done
	return end
}

// Every way in which a request is not sent: its body is closed, it is as it was,
// there is an error or a response, nothing is taken, and no request stays behind.
func TestContractWhereNothingIsSent(t *testing.T) {
	type world struct {
		*scene
		policy  headway.Policy
		observe func(headway.Event)
	}
	refuse := func(change func(*headway.Policy)) func(*world) {
		return func(w *world) { change(&w.policy) }
	}
	noWait := refuse(func(p *headway.Policy) { p.MaxWait = headway.NoWait })
	for name, tc := range map[string]struct {
		prepare func(*world)
		ask     func(*world) ask
		want    any // a panic's value, or part of the error; nil: a response
	}{
		"no room in time":  {prepare: noWait, want: "could start in 1m0s"},
		"a deadline":       {ask: func(w *world) ask { return ask{ctx: w.within(time.Second)} }, want: "after the caller's deadline"},
		"the line is full": {prepare: func(w *world) { w.policy.MaxWaiting = 1 }, want: "the line is full"},
		"a limit of zero": {prepare: refuse(func(p *headway.Policy) {
			p.Rules = []headway.Rule{{Name: "zero", Limit: limiter.Blocked(), Methods: []string{"POST"}}}
		}), want: "the limit is Blocked"},
		"an impossible cost": {ask: func(*world) ask { return cost(2) }, want: "more than the limit"},
		"no slot": {prepare: func(w *world) {
			w.policy.Limits, w.policy.MaxInFlight, w.policy.MaxWait = nil, 1, headway.NoWait
		}, want: "in flight"},
		"no key": {prepare: refuse(func(p *headway.Policy) {
			p.Rules = []headway.Rule{{Name: "key", Limit: limiter.PerSecond(9), Methods: []string{"POST"}, Key: headway.FromCallKey}}
		}), want: "cannot apply rule"},
		"the key panics": {prepare: refuse(func(p *headway.Policy) {
			p.Rules = []headway.Rule{{Name: "key", Limit: limiter.PerSecond(9), Methods: []string{"POST"}, Key: func(*http.Request) (string, error) { panic("key") }}}
		}), want: "key"},
		"the key ends the goroutine": {prepare: refuse(func(p *headway.Policy) {
			p.Rules = []headway.Rule{{Name: "key", Limit: limiter.PerSecond(9), Methods: []string{"POST"}, Key: func(*http.Request) (string, error) { runtime.Goexit(); return "", nil }}}
		}), want: "goexit"},
		"the cost panics": {prepare: refuse(func(p *headway.Policy) {
			p.Rules = []headway.Rule{{Name: "key", Limit: limiter.PerSecond(9), Methods: []string{"POST"}, Cost: func(*http.Request) (int64, error) { panic("cost") }}}
		}), want: "cost"},
		"the context is over": {ask: func(w *world) ask {
			ctx, cancel := context.WithCancel(w.Context())
			cancel()
			return ask{ctx: ctx}
		}, want: "context canceled"},
		"the context ends in line": {ask: func(w *world) ask {
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(time.Second, cancel)
			return ask{ctx: ctx}
		}, want: "context canceled"},
		"the context ends after the start": {ask: func(w *world) ask {
			return ask{url: "https://idle.test", ctx: &endsOnSecondLook{Context: w.Context()}}
		}, want: "context canceled"},
		"an answer": {prepare: refuse(func(p *headway.Policy) { p.MaxWait, p.Refusal = headway.NoWait, headway.RefuseWithResponse }), want: nil},
		"the observer of a refusal panics": {prepare: func(w *world) {
			w.policy.MaxWait = headway.NoWait
			w.observe = func(e headway.Event) { panic(e.Kind.String()) }
		}, want: "refused"},
		"the observer of a start panics": {prepare: func(w *world) {
			w.observe = func(e headway.Event) { panic(e.Kind.String()) }
		}, ask: func(w *world) ask { return ask{url: "https://idle.test"} }, want: "start"},
		"the observer of a start ends the goroutine": {prepare: func(w *world) {
			w.observe = func(e headway.Event) { runtime.Goexit() }
		}, ask: func(w *world) ask { return ask{url: "https://idle.test"} }, want: "goexit"},
		"the observer of a cancel panics": {prepare: func(w *world) {
			w.observe = func(e headway.Event) { panic(e.Kind.String()) }
		}, ask: func(w *world) ask {
			ctx, cancel := context.WithCancel(w.Context())
			cancel()
			return ask{ctx: ctx}
		}, want: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{policy: headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerMinute(1)}}}
			if tc.prepare != nil {
				tc.prepare(w)
			}
			observe := w.observe
			var armed atomic.Bool
			observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
				if observe != nil && armed.Swap(false) {
					observe(e)
				}
			})
			playConfig(t, headway.Config{Policies: []headway.Policy{w.policy}, Observer: observer}, func(s *scene) {
				w.scene = s
				s.base.latency = 10 * time.Second
				s.send("first", ask{})
				if w.policy.MaxWaiting > 0 {
					s.send("second", ask{})
				}
				before := s.Snapshot()[0]
				sent := len(s.base.starts())
				var a ask
				if tc.ask != nil {
					a = tc.ask(w)
				}
				b := newBody("hello")
				a.body, a.method = b, "POST"
				req := a.request("A")
				req.GetBody = func() (io.ReadCloser, error) { return newBody("hello"), nil }
				was := lookAt(req)
				armed.Store(true)
				var resp *http.Response
				var err error
				end := after(func() { resp, err = s.RoundTrip(req) })
				switch {
				case end != nil:
					if end != tc.want {
						s.Errorf("got panic %v, want %v", end, tc.want)
					}
				case tc.want == nil:
					if resp == nil || err != nil || resp.StatusCode != 429 || resp.Request != req {
						s.Errorf("got %v, %v, want a response", resp, err)
					}
				case resp != nil || err == nil || !strings.Contains(err.Error(), tc.want.(string)):
					s.Errorf("got %v, %v, want an error: %v", resp, err, tc.want)
				}
				if n := b.closed.Load(); n != 1 {
					s.Errorf("body closed %d times, want once", n)
				}
				if req.Body != b {
					s.Errorf("the body is another")
				}
				if is := lookAt(req); !reflect.DeepEqual(is, was) {
					s.Errorf("the request is not as it was:\n%+v\n%+v", is, was)
				}
				if n := len(s.base.starts()); n != sent {
					s.Errorf("it was sent")
				}
				synctest.Wait()
				after := s.Snapshot()
				if after[0].Waiting != before.Waiting || after[0].InFlight != before.InFlight {
					s.Errorf("somebody stays: %+v, before %+v", after[0], before)
				}
				for _, h := range after {
					for _, r := range h.Rules {
						if used := r.Limit.N - r.Remaining; h.Host == "idle.test" && used != 0 || r.Rule == "1/1m" && h.Host == "api.test" && used != 1 {
							s.Errorf("something was taken: %+v", h)
						}
					}
				}
				s.wantLater()
			})
		})
	}
}

// wantLater checks that later requests come through: nothing is wedged.
func (s *scene) wantLater() {
	s.Helper()
	s.until(10 * time.Minute)
	s.all.Wait()
	a := ask{method: "GET"}
	for range 2 {
		p := s.send("later", a)
		s.until(time.Since(s.base.epoch) + 5*time.Minute)
		if !p.done.Load() || p.err != nil {
			s.Errorf("a later request: done %v, error %v, want a response", p.done.Load(), p.err)
		}
	}
	wantIdle(s, s.Transport)
}

// C34: what is sent is the caller's own request, unchanged by the way.
func TestC34_RequestUnchanged(t *testing.T) {
	var got *http.Request
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		got = req
		return ok(req), nil
	}), headway.Config{Policies: sharedAndTenant()})
	b := newBody("hello")
	req := ask{method: "POST", url: "https://api.test/a%2Fb?q=1#f", call: headway.Call{Key: "k"}, body: b}.request("A")
	req.Header["X"] = []string{"1", "2"}
	req.GetBody = func() (io.ReadCloser, error) { return newBody("hello"), nil }
	was := lookAt(req)
	// Under -race this reader notices every write.
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				lookAt(req)
			}
		}
	}()
	if _, err := tr.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-done
	if got != req || req.Body != b || b.closed.Load() != 0 {
		t.Errorf("the base got another request, or its body is not open: closed %d times", b.closed.Load())
	}
	if is := lookAt(req); !reflect.DeepEqual(is, was) {
		t.Errorf("the request is not as it was:\n%+v\n%+v", is, was)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// What the base does is handed on, and the slot and a strict unit come back.
func TestContractOfTheBase(t *testing.T) {
	cause := errors.New("cause")
	closed := newBody("x")
	for name, tc := range map[string]struct {
		base func(*http.Request) (*http.Response, error)
		want any // a panic's value, an error, or part of its text
	}{
		"an error":            {func(*http.Request) (*http.Response, error) { return nil, cause }, cause},
		"both":                {func(*http.Request) (*http.Response, error) { return &http.Response{Body: closed}, cause }, cause},
		"both without a body": {func(*http.Request) (*http.Response, error) { return &http.Response{}, cause }, cause},
		"neither":             {func(*http.Request) (*http.Response, error) { return nil, nil }, "neither a response nor an error"},
		"a panic":             {func(*http.Request) (*http.Response, error) { panic("base") }, "base"},
		"Goexit":              {func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil }, "goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := limits(limiter.Limit{N: 1, Per: time.Minute, Strict: true})
			p[0].MaxInFlight = 1
			play(t, p, func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					if req.Header.Get("Name") == "A" {
						return tc.base(req)
					}
					return ok(req), nil
				}
				s.base.latency = time.Second
				s.all.Go(func() {
					var resp *http.Response
					var err error
					end := after(func() { resp, err = s.RoundTrip(ask{}.request("A")) })
					if end == nil {
						end = err
					}
					if resp != nil || end != tc.want && (err == nil || !strings.Contains(err.Error(), fmt.Sprint(tc.want))) {
						s.Errorf("got %v and %v, want %v", resp, end, tc.want)
					}
				})
				synctest.Wait()
				s.sendAll(ask{}, "B") // one minute after A has ended
				s.wantStarts("A@0s B@1m1s")
				wantIdle(s, s.Transport)
			})
		})
	}
	if n := closed.closed.Load(); n != 1 {
		t.Errorf("the body that came with an error was closed %d times, want once", n)
	}
}

// A panic in Rule.Settle harms its own request only, whose response no caller can
// close any more.
func TestSettlePanics(t *testing.T) {
	p := rules(headway.Rule{Name: "r", Limit: limiter.PerMinute(5), Settle: func(*http.Response) (int64, bool) { panic("settle") }})
	p[0].MaxInFlight = 1
	play(t, p, func(s *scene) {
		b := newBody("x")
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: b}, nil
		}
		for range 2 { // the second needs the slot of the first
			if end := after(func() { s.RoundTrip(ask{}.request("A")) }); end != "settle" {
				s.Errorf("got %v, want the panic", end)
			}
		}
		if n := b.closed.Load(); n != 2 {
			s.Errorf("body closed %d times, want once for each request", n)
		}
		wantIdle(s, s.Transport)
	})
}

type idleCloser struct {
	base
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	b := new(idleCloser)
	p := limits(limiter.PerHour(1))
	p[0].MaxWait = headway.NoWait
	tr := newTransport(t, b, headway.Config{Policies: p})
	if _, err := tr.RoundTrip(ask{}.request("A")); err != nil {
		t.Fatal(err)
	}
	(&http.Client{Transport: tr}).CloseIdleConnections()
	if b.closed != 1 {
		t.Errorf("forwarded %d times, want once", b.closed)
	}
	if _, err := tr.RoundTrip(ask{}.request("B")); !errors.Is(err, headway.ErrThrottled) {
		t.Errorf("got %v, want the limit as it was", err)
	}
	newTransport(t, new(base), headway.Config{}).CloseIdleConnections() // a base that cannot
}

// Untouched: no policy, Bypass, and what the base has to complain about.
func TestPassesUntouched(t *testing.T) {
	var events []headway.Event
	cfg := headway.Config{Observer: collect(&events), Policies: []headway.Policy{{
		Hosts: []string{"api.test"}, Limits: []limiter.Limit{limiter.Blocked()}, MaxInFlight: 1,
	}}}
	playConfig(t, cfg, func(s *scene) {
		s.sendAll(ask{url: "https://other.test"}, "A", "B")
		s.sendAll(ask{call: headway.Call{Bypass: true}}, "C", "D")
		s.wantStarts("A@0s B@0s C@0s D@0s")
		if d, err := s.Delay(ask{call: headway.Call{Bypass: true}}.request("C")); d != 0 || err != nil {
			s.Errorf("Delay: got %v, %v, want 0", d, err)
		}
		for _, req := range []*http.Request{{Header: http.Header{}}, {Header: http.Header{}, URL: new(url.URL)}} {
			if _, err := s.RoundTrip(req); err != nil { // a base of net/http has an error for it
				s.Errorf("got %v, want what the base says", err)
			}
		}
		if len(events) > 0 || len(s.Snapshot()) > 0 {
			s.Errorf("seen: %v, %v", events, s.Snapshot())
		}
	})
}

func TestRefusalResponseThroughClient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, "hello") }))
	defer srv.Close()
	p := limits(limiter.Every(1500 * time.Minute))
	p[0].MaxWait, p[0].Refusal = headway.NoWait, headway.RefuseWithResponse
	c := &http.Client{Transport: newTransport(t, srv.Client().Transport, headway.Config{Policies: p}), Timeout: time.Minute}
	defer c.CloseIdleConnections()
	for i, want := range []int{200, 429, 429} {
		method := []string{"POST", "POST", "HEAD"}[i]
		resp, err := c.Do(ask{method: method, url: srv.URL, body: newBody("x")}.request("A"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("got %s, want %d", resp.Status, want)
		}
		switch i {
		case 0:
			if string(text) != "hello" || resp.Header.Get("Headway-Refused") != "" {
				t.Errorf("got %q, %v, want the server's answer", text, resp.Header)
			}
		case 1:
			var got struct {
				Error struct{ Type, Code, Message string }
				After int64 `json:"retry_after"`
			}
			if err := json.Unmarshal(text, &got); err != nil || got.Error.Type == "" || got.Error.Message == "" || got.After < 89_999 || got.After > 90_000 {
				t.Errorf("got %s, %v", text, err)
			}
			fallthrough
		case 2:
			if resp.Header.Get("Headway-Refused") != "limit" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("got %v", resp.Header)
			}
		}
	}
}

// The slot is held until the body is read or closed, and comes back once.
func TestSlotUntilTheBodyEnds(t *testing.T) {
	p := limits()
	p[0].MaxInFlight = 1
	for name, tc := range map[string]struct {
		end  func(*trip)
		held bool
	}{
		"closed":       {end: func(p *trip) { p.resp.Body.Close() }},
		"closed twice": {end: func(p *trip) { p.resp.Body.Close(); p.resp.Body.Close() }},
		"read":         {end: func(p *trip) { io.ReadAll(p.resp.Body) }},
		"read and closed": {end: func(p *trip) {
			io.ReadAll(p.resp.Body)
			p.resp.Body.Close()
		}},
		"the context ends": {end: func(p *trip) { p.cancel() }},
		"nothing":          {end: func(p *trip) {}, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, p, func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: newBody("hello"), Request: req}, nil
				}
				a := s.send("A", ask{})
				b := s.sendAll(ask{}, "B", "C")
				s.until(time.Second)
				tc.end(a)
				synctest.Wait()
				if tc.held {
					s.wantStartsSoFar("A@0s")
					a.resp.Body.Close()
					synctest.Wait()
				}
				s.wantStartsSoFar("A@0s B@1s") // and not C
				b[0].resp.Body.Close()
				s.wantStarts("A@0s B@1s C@1s")
				b[1].resp.Body.Close()
				wantIdle(s, s.Transport)
			})
		})
	}
}

// A connection that switches protocols keeps its io.Writer, and its slot.
func TestSwitchingProtocolsWithSlots(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, rw)
		fmt.Fprint(conn, "bye")
		conn.(*net.TCPConn).CloseWrite()
	}))
	defer srv.Close()
	p := limits(limiter.PerSecond(100))
	p[0].MaxInFlight = 1
	tr := newTransport(t, srv.Client().Transport, headway.Config{Policies: p})
	resp, err := tr.RoundTrip(ask{url: srv.URL, header: http.Header{"Connection": {"upgrade"}, "Upgrade": {"echo"}}}.request("A"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 || tr.Snapshot()[0].InFlight != 1 {
		t.Errorf("got %s, %+v, want 101 in flight", resp.Status, tr.Snapshot())
	}
	w, isWriter := resp.Body.(io.Writer)
	if !isWriter {
		t.Fatalf("got a %T, want an io.Writer", resp.Body)
	}
	fmt.Fprint(w, "hello, ")
	if err := resp.Body.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(resp.Body); string(text) != "hello, bye" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	resp.Body.Close()
	wantIdle(t, tr)
}

// A body that is neither read nor closed does not hold its slot for ever.
func TestLeakedBodyReturnsItsSlot(t *testing.T) {
	p := limits()
	p[0].MaxInFlight = 1
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: newBody("hello")}, nil
	}), headway.Config{Policies: p})
	for range 3 {
		leakResponse(t, tr)
		for tries := 0; tr.Snapshot()[0].InFlight > 0; tries++ {
			if tries == 1000 {
				t.Fatal("the slot of a leaked body is gone")
			}
			runtime.GC()
			runtime.Gosched()
		}
	}
}

//go:noinline
func leakResponse(t *testing.T, tr http.RoundTripper) {
	if _, err := tr.RoundTrip(ask{}.request("A")); err != nil {
		t.Error(err)
	}
}

// C85, the first half: each hop of a redirect is charged to its own host.
func TestC85_RedirectChargesEachHopToItsHost(t *testing.T) {
	hosts := limits(limiter.Every(time.Minute))
	play(t, hosts, func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			if req.URL.Host == "one.test" {
				resp.StatusCode = 302
				resp.Header.Set("Location", "https://two.test/")
			}
			return resp, nil
		}
		c := &http.Client{Transport: s.Transport}
		begin := time.Now()
		for range 2 {
			resp, err := c.Do(ask{url: "https://one.test/"}.request("A"))
			if err != nil {
				s.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Request.URL.Host; got != "two.test" {
				s.Errorf("got an answer of %s", got)
			}
		}
		if took := time.Since(begin); took != time.Minute {
			s.Errorf("took %v, want 1m: each host's unit once per hop", took)
		}
		s.wantStarts("A@0s A@0s A@1m0s A@1m0s")
		for _, host := range []string{"one.test", "two.test"} {
			if got := s.remaining(host, limiter.Every(time.Minute).String()); got != 0 {
				s.Errorf("%s: got %d left, want 0", host, got)
			}
		}
	})
}

func TestC81_OneHost(t *testing.T) {
	play(t, limits(limiter.Every(time.Minute)), func(s *scene) {
		for i, u := range []string{"https://Example.COM:443/", "https://example.com", "https://example.com./", "https://EXAMPLE.com.:443/x"} {
			if d, err := s.Delay(ask{url: u}.request("A")); d != time.Duration(i)*time.Minute || err != nil {
				s.Errorf("%s: got %v, %v, want %v", u, d, err, time.Duration(i)*time.Minute)
			}
			s.send("A", ask{url: u})
		}
		if got := s.Snapshot(); len(got) != 1 || got[0].Host != "example.com" {
			s.Errorf("got %+v, want one host", got)
		}
		s.wantStarts("A@0s A@1m0s A@2m0s A@3m0s")
	})
}
