package headwaytest_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

func TestRecorderRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // its time begins when it is made
		rec := headwaytest.NewRecorder(nil)
		rec.KeyHeader = "Tenant"
		status(t, rec, "https://API.example.com:443/items?q=1", "Tenant", "a")
		time.Sleep(time.Second)
		again := newRequest(t, headway.WithAttempt(t.Context(), 1), "https://API.example.com:443/items?q=1", "Tenant", "a")
		if _, err := rec.RoundTrip(again); err != nil {
			t.Fatal(err)
		}
		status(t, rec, "https://API.example.com:443/items?q=1", "Tenant", "b")
		status(t, rec, "https://API.example.com:443/items?q=2", "Tenant", "a")
		post := newRequest(t, t.Context(), "http://b.example.com:8080")
		post.Method = "POST"
		if _, err := rec.RoundTrip(post); err != nil {
			t.Fatal(err)
		}
		first := headwaytest.Start{Host: "api.example.com", Method: "GET", Path: "/items", Key: "a"}
		want := []headwaytest.Start{first, first, first, first, {At: time.Second, Host: "b.example.com:8080", Method: "POST"}}
		want[1].At, want[1].Attempt = time.Second, 1
		want[2].At, want[2].Key = time.Second, "b"
		want[3].At = time.Second
		got := rec.Starts()
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		got[0].Key = "changed"
		if rec.Starts()[0] != first {
			t.Error("a change of what Starts returned changed the Recorder")
		}
		if got, want := rec.String(), `          0s  GET api.example.com/items  key a
          1s  GET api.example.com/items  key a  attempt 1
          1s  GET api.example.com/items  key b
          1s  GET api.example.com/items  key a
          1s  POST b.example.com:8080
`; got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// A baseFunc is a base transport.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRecorderHandsOn: the same request, and what comes back for it.
func TestRecorderHandsOn(t *testing.T) {
	want, wantErr := new(http.Response), errors.New("broken")
	req := newRequest(t, t.Context(), url)
	rec := headwaytest.NewRecorder(baseFunc(func(got *http.Request) (*http.Response, error) {
		if got != req {
			t.Error("another request was handed on")
		}
		return want, wantErr
	}))
	if resp, err := rec.RoundTrip(req); resp != want || err != wantErr {
		t.Errorf("got %v, %v, want what the base returned", resp, err)
	}
	rec.CloseIdleConnections() // nothing to close
	base := new(idler)
	headwaytest.NewRecorder(base).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("the base's idle connections were closed %d times, want once", base.closed)
	}
}

func TestRecorderManyAtOnce(t *testing.T) {
	rec := headwaytest.NewRecorder(nil)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			status(t, rec, url)
			rec.Starts()
		})
	}
	all.Wait()
	if got := len(rec.Starts()); got != 100 {
		t.Errorf("got %d starts, want 100", got)
	}
	if !slices.IsSortedFunc(rec.Starts(), func(a, b headwaytest.Start) int { return int(a.At - b.At) }) {
		t.Error("the starts are not in order of time")
	}
}

// record returns a Recorder of requests with these keys at these times, in
// seconds. It runs in a bubble.
func record(t *testing.T, keys string, seconds ...float64) *headwaytest.Recorder {
	t.Helper()
	rec, begin := headwaytest.NewRecorder(nil), time.Now()
	rec.KeyHeader = "Key"
	for i, s := range seconds {
		time.Sleep(time.Until(begin.Add(time.Duration(s * float64(time.Second)))))
		status(t, rec, "https://h/"+string(rune('0'+i)), "Key", keys[i:i+1])
	}
	return rec
}

type start = headwaytest.Start

// TestAssertions: each passes where it should and fails, once and with a
// timeline, where it should.
func TestAssertions(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		assert func(testing.TB, *headwaytest.Recorder)
		want   string // empty: it passes
	}{
		"at most": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 2, s) }, ""},
		"a period is half-open": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 2, s+1) },
			`headwaytest: 3 starts within 1.000000001s from 0s, want at most 2:
  >           0s  GET h/0  key a
  >        500ms  GET h/1  key b
  >           1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
`},
		"at most none": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 0, s, start{Key: "c"}) }, ""},
		"one is more than none": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 0, 1, start{Key: "a", Path: "/2"}) },
			`headwaytest: 1 starts within 1ns from 1s, want at most 0:
  >           1s  GET h/2  key a
`},
		"at most of one key": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 1, s, start{Key: "a"}) }, ""},
		"at most of another": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 1, s, start{Key: "b"}) },
			`headwaytest: 2 starts within 1s from 2s, want at most 1:
           500ms  GET h/1  key b
  >           2s  GET h/3  key b
  >         2.5s  GET h/4  key b
`},
		"at most of two": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 2, s+1, start{Path: "/0"}, start{Key: "b"}) }, ""},
		"no period": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, 2, 0) },
			"headwaytest: AtMost(2, 0s): want a number and a period above zero"},
		"a negative number": {func(t testing.TB, r *headwaytest.Recorder) { r.AtMost(t, -1, s) },
			"headwaytest: AtMost(-1, 1s): want a number and a period above zero"},

		"started at": {func(t testing.TB, r *headwaytest.Recorder) { r.StartedAt(t, 0, s/2, s, 2*s, 5*s/2) }, ""},
		"started at other times": {func(t testing.TB, r *headwaytest.Recorder) { r.StartedAt(t, 0, s/2, s+1, 2*s, 5*s/2) },
			`headwaytest: got 5 starts:
              0s  GET h/0  key a
           500ms  GET h/1  key b
  >           1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
want 5:
              0s
           500ms
  > 1.000000001s
              2s
            2.5s
`},
		"fewer": {func(t testing.TB, r *headwaytest.Recorder) { r.StartedAt(t, 0, s/2, s, 2*s, 5*s/2, 3*s) },
			`headwaytest: got 5 starts:
              0s  GET h/0  key a
           500ms  GET h/1  key b
              1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
want 6:
              0s
           500ms
              1s
              2s
            2.5s
  >           3s
`},
		"more": {func(t testing.TB, r *headwaytest.Recorder) { r.StartedAt(t) },
			`headwaytest: got 5 starts:
  >           0s  GET h/0  key a
  >        500ms  GET h/1  key b
  >           1s  GET h/2  key a
  >           2s  GET h/3  key b
  >         2.5s  GET h/4  key b
want 0:
    none
`},

		"started": {func(t testing.TB, r *headwaytest.Recorder) {
			r.Started(t, start{Key: "a"}, start{At: s / 2, Path: "/1", Host: "h"}, start{At: s}, start{At: 2 * s, Method: "GET"}, start{At: 5 * s / 2})
		}, ""},
		"a time of zero is a time": {func(t testing.TB, r *headwaytest.Recorder) {
			r.Started(t, start{}, start{At: s / 2}, start{Path: "/2"}, start{At: 2 * s}, start{At: 5 * s / 2})
		}, `headwaytest: got 5 starts:
              0s  GET h/0  key a
           500ms  GET h/1  key b
  >           1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
want 5:
              0s
           500ms
  >           0s  /2
              2s
            2.5s
`},

		"before": {func(t testing.TB, r *headwaytest.Recorder) { r.Before(t, start{Key: "a"}, start{Key: "b"}) }, ""},
		"not before": {func(t testing.TB, r *headwaytest.Recorder) { r.Before(t, start{Key: "b"}, start{Path: "/0"}) },
			`headwaytest: none like "key b" came before the first like "/0":
  >           0s  GET h/0  key a
  >        500ms  GET h/1  key b
              1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
`},
		"not before itself": {func(t testing.TB, r *headwaytest.Recorder) { r.Before(t, start{At: s}, start{Path: "/2"}) },
			`headwaytest: none like "1s" came before the first like "/2":
              0s  GET h/0  key a
           500ms  GET h/1  key b
  >           1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
`},
		"before what never was": {func(t testing.TB, r *headwaytest.Recorder) {
			r.Before(t, start{Key: "a"}, start{Host: "g", Attempt: 1})
		},
			`headwaytest: no start like "g  attempt 1":
              0s  GET h/0  key a
           500ms  GET h/1  key b
              1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
`},
		"what never was before": {func(t testing.TB, r *headwaytest.Recorder) { r.Before(t, start{Method: "PUT"}, start{Key: "a"}) },
			`headwaytest: no start like "PUT":
              0s  GET h/0  key a
           500ms  GET h/1  key b
              1s  GET h/2  key a
              2s  GET h/3  key b
            2.5s  GET h/4  key b
`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, fake := record(t, "ababb", 0, 0.5, 1, 2, 2.5), new(fakeTB)
				tt.assert(fake, rec)
				if tt.want == "" {
					fake.passes(t)
				} else {
					fake.fails(t, tt.want)
				}
			})
		})
	}
}

// TestBeforeWithinOneInstant: the order of the calls counts.
func TestBeforeWithinOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, good, bad := record(t, "ab", 0, 0), new(fakeTB), new(fakeTB)
		rec.Before(good, start{Key: "a"}, start{Key: "b"})
		good.passes(t)
		rec.Before(bad, start{Key: "b"}, start{Key: "a"})
		if len(bad.failures) != 1 {
			t.Errorf("got the failures %q, want one", bad.failures)
		}
	})
}

// Requests that look alike are independent, unless their context says that they
// are attempts of one call.
func TestRecorderCountsNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := headwaytest.NewRecorder(nil)
		transport, err := headway.NewTransport(rec, headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			status(t, transport, url)
		}
		for n := range 3 {
			if _, err := transport.RoundTrip(newRequest(t, headway.WithAttempt(t.Context(), n), url)); err != nil {
				t.Fatal(err)
			}
		}
		var got []int
		for _, s := range rec.Starts() {
			got = append(got, s.Attempt)
		}
		if want := []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("got the attempts %v, want %v", got, want)
		}
		rec.Before(t, headwaytest.Start{Attempt: 1}, headwaytest.Start{Attempt: 2})
	})
}

// TestTimelineIsShort: of many starts a failure shows those that matter.
func TestTimelineIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, fake := headwaytest.NewRecorder(nil), new(fakeTB)
		for i := range 100 {
			if i != 50 {
				time.Sleep(time.Second)
			}
			status(t, rec, "https://h/"+http.StatusText(200))
		}
		rec.AtMost(fake, 1, time.Second)
		fake.fails(t, `headwaytest: 2 starts within 1s from 50s, want at most 1:
                ... 46 more
             47s  GET h/OK
             48s  GET h/OK
             49s  GET h/OK
  >          50s  GET h/OK
  >          50s  GET h/OK
             51s  GET h/OK
             52s  GET h/OK
             53s  GET h/OK
                ... 46 more
`)
	})
}

func TestAssertIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &headwaytest.Body{Text: "x"}
		transport, err := headway.NewTransport(script(headwaytest.Reply{Body: body}), headway.Config{Policies: []headway.Policy{{
			Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerMinute(1)}, MaxInFlight: 5,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		good, bad := new(fakeTB), new(fakeTB)
		headwaytest.AssertIdle(good, transport)
		good.passes(t)

		resp, err := transport.RoundTrip(newRequest(t, t.Context(), url))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { status(t, transport, url) })
		synctest.Wait()
		headwaytest.AssertIdle(bad, transport)
		bad.fails(t, `headwaytest: policy "p", host "api.example.com": 1 in line, 1 in flight, want none`)

		resp.Body.Close()
		all.Wait()
		headwaytest.AssertIdle(good, transport)
		good.passes(t)
	})
}
