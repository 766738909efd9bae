package otelheadway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
)

const url = "https://api.test/"

// One event of each kind, and the value of each metric.
func TestS81_EveryMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		n := 0
		tr := r.transport(service{time.Second, func(req *http.Request) *http.Response {
			switch n++; n {
			case 1:
				return reply(req, 200, "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "50", "X-RateLimit-Reset", "60")
			case 2:
				return reply(req, 200, "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "43", "X-RateLimit-Reset", "60")
			case 3:
				return reply(req, 429, "Retry-After", "5")
			case 4:
				return reply(req, 503, "Retry-After", "soon")
			}
			return reply(req, 200)
		}}, headway.Policy{
			Name: "p", Hosts: []string{"api.test"}, Limits: []limiter.Limit{limiter.PerMinute(6)},
			Rules: []headway.Rule{{
				Name: "tokens", Limit: limiter.PerHour(1000),
				Cost:   func(*http.Request) (int64, error) { return 10, nil },
				Settle: func(*http.Response) (int64, bool) { return 7, true },
			}, {
				Name: "tenant", Methods: []string{"POST"}, Limit: limiter.PerHour(1000), Key: headway.ByHeader("Tenant"),
			}},
		})
		for range 3 {
			send(tr, t.Context(), url)
		}
		// Now at 3 s, paused until 8 s: one waits and is sent, one gives up, one is
		// refused, one has no key.
		var all crowd
		ctx, cancel := context.WithCancel(t.Context())
		all.send(tr, headway.WithAttempt(t.Context(), 1), url)
		synctest.Wait()
		all.send(tr, ctx, url)
		send(tr, headway.WithCall(t.Context(), headway.Call{MaxWait: headway.NoWait}), url)
		post, _ := http.NewRequest("POST", url, nil)
		if _, err := tr.RoundTrip(post); !errors.Is(err, headway.ErrKey) {
			t.Errorf("got %v, want a KeyError", err)
		}
		quota, err := tr.Quota("api.test", "tokens", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{100, -40} {
			if err := quota.Spend(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()

		base := []string{
			"headway.decisions{headway.outcome=refused headway.reason=pause} 1",
			"headway.decisions{headway.outcome=refused headway.reason=no_key} 1",
			"headway.pause.duration{} 1 5s",
			"headway.drift{headway.rule=learned} 6",
			"headway.units.spent{headway.rule=tokens headway.source=outside} 100",
			"headway.units.returned{headway.rule=tokens headway.source=outside} 40",
		}
		r.wantSeries(append(base,
			"headway.decisions{headway.outcome=started} 3",
			"headway.wait.duration{headway.outcome=started} 3 0s",
			"headway.wait.duration{headway.outcome=refused} 2 0s",
			"headway.amplification{} 1", // 3 sent for 3 calls; what is refused is not sent
			"headway.waiting{} 2",
			"headway.in_flight{} 0",
			"headway.pause.remaining{} 5",
			"headway.units.spent{headway.rule=6/1m headway.source=client} 3",
			"headway.units.spent{headway.rule=tokens headway.source=client} 30",
			"headway.units.returned{headway.rule=tokens headway.source=client} 9",
			"headway.remaining{headway.rule=6/1m} 3",
			"headway.remaining{headway.rule=tokens} 919",
			"headway.remaining{headway.rule=learned} 42",
		)...)

		time.Sleep(time.Second)
		cancel()
		all.Wait() // at 9 s
		r.wantSeries(append(base,
			"headway.decisions{headway.outcome=started} 4",
			"headway.decisions{headway.outcome=canceled} 1",
			"headway.wait.duration{headway.outcome=started} 4 5s",
			"headway.wait.duration{headway.outcome=refused} 2 0s",
			"headway.wait.duration{headway.outcome=canceled} 1 1s",
			"headway.delayed{} 2",
			"headway.retries{} 1",
			fmt.Sprint("headway.amplification{} ", 4.0/3),
			"headway.waiting{} 0",
			"headway.in_flight{} 0",
			"headway.pause.remaining{} 0",
			"headway.headers.malformed{} 1",
			"headway.units.spent{headway.rule=6/1m headway.source=client} 4",
			"headway.units.spent{headway.rule=tokens headway.source=client} 40",
			"headway.units.returned{headway.rule=tokens headway.source=client} 12",
			"headway.remaining{headway.rule=6/1m} 2",
			"headway.remaining{headway.rule=tokens} 912",
			"headway.remaining{headway.rule=learned} 41",
		)...)
	})
}

// What is refused, gives up or has no key does not lower the amplification: it is
// the attempts sent by the calls sent, and not reported before the first of these.
func TestAmplificationOfWhatIsSent(t *testing.T) {
	r := newRig(t)
	amplification := func() string {
		for _, line := range r.series() {
			if strings.HasPrefix(line, "headway.amplification{") {
				return line
			}
		}
		return ""
	}
	tell := func(n int, e headway.Event) {
		e.Policy, e.Host = "p", "api.test"
		for range n {
			r.Observe(t.Context(), e)
		}
	}
	for _, kind := range []headway.EventKind{headway.EventRefused, headway.EventCanceled, headway.EventNoKey, headway.EventOpenRefused} {
		tell(100, headway.Event{Kind: kind})
	}
	if got := amplification(); got != "" {
		t.Errorf("nothing was sent, got %q", got)
	}
	tell(4, headway.Event{Kind: headway.EventStart})
	tell(2, headway.Event{Kind: headway.EventStart, Attempt: 1})
	tell(100, headway.Event{Kind: headway.EventRefused, Attempt: 2})
	if got, want := amplification(), "headway.amplification{} 1.5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The table in the package's documentation is what the metrics are: names, units,
// kinds and attributes, no more and no less.
func TestDocumentedMetrics(t *testing.T) {
	type row struct{ kind, unit, attrs string }
	documented := map[string]row{}
	file, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line := regexp.MustCompile(`^//\t(headway\.\S+)\s+(\S+)\s+(\S+)\s*(.*)$`)
	for s := bufio.NewScanner(file); s.Scan(); {
		if m := line.FindStringSubmatch(s.Text()); m != nil {
			documented[m[1]] = row{m[2], m[3], strings.TrimSpace(m[4])}
		}
	}

	r := newRig(t)
	event := func(e headway.Event) {
		e.Policy, e.Host = "p", "api.test"
		r.Observe(t.Context(), e)
	}
	for _, e := range []headway.Event{
		{Kind: headway.EventStart, Rule: "r", Cost: 1, Wait: 1, Attempt: 1}, {Kind: headway.EventRefused}, {Kind: headway.EventCanceled},
		{Kind: headway.EventSpend, Rule: "r", Cost: -1}, {Kind: headway.EventPause, Pause: 1}, {Kind: headway.EventLearned, Rule: "r", Drift: 1},
		{Kind: headway.EventMalformed}, {Kind: headway.EventOverflow}, {Kind: headway.EventOpen},
		{Kind: headway.EventStoreDown}, {Kind: headway.EventStart, Away: true},
	} {
		event(e)
	}
	tr := r.transport(service{}, headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(1)}, Breaker: &breaker.Config{}})
	if err := send(tr, t.Context(), url); err != nil {
		t.Fatal(err)
	}
	got := map[string]row{}
	for name, m := range r.collect() {
		keys := map[string]bool{}
		note := func(set attribute.Set) {
			for _, a := range set.ToSlice() {
				if a.Key != "headway.policy" && a.Key != "server.address" {
					keys[string(a.Key)] = true
				}
			}
		}
		row := row{unit: m.Unit}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			row.kind = "updowncounter"
			if data.IsMonotonic {
				row.kind = "counter"
			}
			for _, p := range data.DataPoints {
				note(p.Attributes)
			}
		case metricdata.Gauge[int64]:
			row.kind = "gauge"
			for _, p := range data.DataPoints {
				note(p.Attributes)
			}
		case metricdata.Gauge[float64]:
			row.kind = "gauge"
		case metricdata.Histogram[float64]:
			row.kind = "histogram"
			for _, p := range data.DataPoints {
				note(p.Attributes)
			}
		}
		var list []string
		for key := range keys {
			list = append(list, strings.TrimPrefix(key, "headway."))
		}
		slices.Sort(list)
		row.attrs = strings.Join(list, ", ")
		got[name] = row
		if m.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	for name, row := range got {
		if documented[name] != row {
			t.Errorf("%s is %q, documented as %q", name, row, documented[name])
		}
	}
	for name := range documented {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is documented and never reported", name)
		}
	}
}

// A request that the server pushes back twice while it waits was delayed once.
func TestS14_DelayedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		tr := r.transport(service{time.Second, func(req *http.Request) *http.Response {
			if s := req.Header.Get("Pause"); s != "" {
				return reply(req, 429, "Retry-After", s)
			}
			return reply(req, 200)
		}}, headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{{N: 3, Per: 2 * time.Second}}})
		var all crowd
		for _, seconds := range []string{"2", "5", ""} {
			req, _ := http.NewRequest("GET", url, nil)
			req.Header.Set("Pause", seconds)
			all.Go(func() { tr.RoundTrip(req) })
			time.Sleep(250 * time.Millisecond)
		}
		// The limit has room at 2 s, but at 1 s there is a pause until 3 s, and at
		// 1.25 s one until 6.25 s.
		all.send(tr, t.Context(), url)
		all.Wait()
		if got := r.sum("headway.delayed"); got != 1 {
			t.Errorf("got %d delayed, want 1", got)
		}
		r.wantWait(5500*time.Millisecond, 1)
	})
}

// wantWait checks how many requests have waited, and how long all together.
func (r *rig) wantWait(sum time.Duration, n int) {
	r.Helper()
	data := r.collect()["headway.wait.duration"].Data.(metricdata.Histogram[float64])
	var count uint64
	var total float64
	for _, p := range data.DataPoints {
		count += p.Count - p.BucketCounts[0] // the first bucket is those that did not
		total += p.Sum
	}
	if int(count) != n || total != sum.Seconds() {
		r.Errorf("%d have waited %v s, want %d and %v", count, total, n, sum)
	}
}

// Each of 10,000 concurrent requests is one decision, of any kind.
func TestDecisionsAreRequests(t *testing.T) {
	const n = 10_000
	r := newRig(t)
	tr := r.transport(service{},
		headway.Policy{Name: "free", Hosts: []string{"free.test"}, Limits: []limiter.Limit{limiter.PerSecond(1_000_000)}},
		headway.Policy{Name: "busy", Hosts: []string{"busy.test"}, MaxWait: 20 * time.Millisecond, MaxInFlight: 4, Limits: []limiter.Limit{
			{N: 20_000, Per: time.Second, Law: limiter.Bucket, Burst: 100},
		}},
		headway.Policy{Name: "keyed", Hosts: []string{"keyed.test"}, MaxWait: headway.NoWait, Rules: []headway.Rule{
			{Name: "key", Limit: limiter.PerHour(5), Key: headway.FromCallKey},
		}},
	)
	var all sync.WaitGroup
	var sent, refused, canceled, noKey atomic.Int64
	for i := range n {
		all.Go(func() {
			ctx, host := t.Context(), []string{"free", "busy", "keyed"}[i%3]
			switch {
			case i%3 == 2 && i%5 > 0:
				ctx = headway.WithCall(ctx, headway.Call{Key: fmt.Sprint(i % 7)})
			case i%30 == 1:
				var cancel func()
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			switch err := send(tr, ctx, "https://"+host+".test/"); {
			case err == nil:
				sent.Add(1)
			case errors.Is(err, headway.ErrThrottled):
				refused.Add(1)
			case errors.Is(err, headway.ErrKey):
				noKey.Add(1)
			case errors.Is(err, context.Canceled):
				canceled.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	outcome, reason := attribute.Key("headway.outcome"), attribute.Key("headway.reason")
	for _, tt := range []struct {
		what      string
		got, want int64
	}{
		{"all", r.sum("headway.decisions"), n},
		{"started", r.sum("headway.decisions", outcome.String("started")), sent.Load()},
		{"refused", r.sum("headway.decisions", outcome.String("refused")), refused.Load() + noKey.Load()},
		{"without key", r.sum("headway.decisions", reason.String("no_key")), noKey.Load()},
		{"canceled", r.sum("headway.decisions", outcome.String("canceled")), canceled.Load()},
		{"units of keys", r.sum("headway.units.spent", attribute.String("headway.rule", "key")), 35},
	} {
		if tt.got != tt.want || tt.want == 0 {
			t.Errorf("%s: counted %d, want %d, more than none", tt.what, tt.got, tt.want)
		}
	}
	var waits uint64
	for _, p := range r.collect()["headway.wait.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
		waits += p.Count
	}
	if waits != n {
		t.Errorf("%d waits, want %d", waits, n)
	}
	if got := r.sum("headway.waiting") + r.sum("headway.in_flight"); got != 0 {
		t.Errorf("%d waiting or in flight after the end", got)
	}
}

// hostsOf returns the hosts of a metric's series, and how many series there are.
func hostsOf(m metricdata.Metrics) (hosts map[string]bool, series int) {
	hosts = map[string]bool{}
	note := func(set attribute.Set) {
		host, _ := set.Value("server.address")
		hosts[host.AsString()] = true
		series++
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			note(p.Attributes)
		}
	}
	return hosts, series
}

func TestS82_SeriesAreBounded(t *testing.T) {
	const most, hosts = 100, 10_000
	r := newRig(t, otelheadway.WithMaxHosts(most))
	tr := r.transport(service{}, headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerHour(9)}})
	for range 2 {
		for i := range hosts {
			if err := send(tr, t.Context(), fmt.Sprintf("https://h%d.test/", i)); err != nil {
				t.Fatal(err)
			}
		}
		for name, m := range r.collect() {
			if hosts, series := hostsOf(m); len(hosts) != most+1 || series != most+1 || !hosts["_OTHER"] {
				t.Errorf("%s has %d series of %d hosts, want %d and _OTHER", name, series, len(hosts), most)
			}
		}
	}
	other := attribute.String("server.address", "_OTHER")
	if got, want := r.sum("headway.decisions", other), int64(2*(hosts-most)); got != want {
		t.Errorf("%d decisions for all other hosts, want %d", got, want)
	}
	if got := r.sum("headway.decisions"); got != 2*hosts {
		t.Errorf("%d decisions, want %d", got, 2*hosts)
	}
	// All names that a server chooses share one series.
	for i := range 1000 {
		r.Observe(t.Context(), headway.Event{Kind: headway.EventLearned, Policy: "p", Host: "h0.test", Rule: fmt.Sprint("learned ", i), Drift: 1})
	}
	if _, series := hostsOf(r.collect()["headway.drift"]); series != 1 {
		t.Errorf("%d series of learned limits, want 1", series)
	}
	for i := range 1000 {
		r.Observe(t.Context(), headway.Event{Kind: headway.EventSpend, Policy: "p", Host: "h0.test", Rule: fmt.Sprint("rule ", i), Cost: 1})
	}
	outside := attribute.String("headway.source", "outside")
	if _, series := hostsOf(r.collect()["headway.units.spent"]); series > most+1+65 {
		t.Errorf("%d series of units, want at most 65 for one host", series)
	}
	if got := r.sum("headway.units.spent", outside); got != 1000 {
		t.Errorf("%d units, want all 1000", got)
	}
}

// What the Transport itself puts together is together in the metrics.
func TestHostsOfMetrics(t *testing.T) {
	r := newRig(t)
	one := []limiter.Limit{limiter.PerHour(9)}
	tr := r.transport(service{},
		headway.Policy{Name: "shared", Hosts: []string{"a.test", "b.test"}, Shared: true, Limits: one},
		headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: one})
	for _, url := range []string{"https://a.test/", "https://b.test/", "http://127.0.0.1:8080/", "http://[::1]:8080/", url} {
		if err := send(tr, t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, line := range r.series() {
		if strings.HasPrefix(line, "headway.decisions") || strings.HasPrefix(line, "headway.remaining") {
			got = append(got, line)
		}
	}
	wantLines(t, got, []string{
		"headway.decisions{headway.outcome=started headway.policy=shared server.address=a.test} 1",
		"headway.decisions{headway.outcome=started headway.policy=shared server.address=b.test} 1",
		"headway.remaining{headway.policy=shared headway.rule=9/1h} 7",
		"headway.decisions{headway.outcome=started server.address=127.0.0.1 server.port=8080} 1",
		"headway.remaining{headway.rule=9/1h server.address=127.0.0.1 server.port=8080} 8",
		"headway.decisions{headway.outcome=started server.address=::1 server.port=8080} 1",
		"headway.remaining{headway.rule=9/1h server.address=::1 server.port=8080} 8",
		"headway.decisions{headway.outcome=started} 1",
		"headway.remaining{headway.rule=9/1h} 8",
	})
}

// Several Transports with the same policy name count together, and the least that is
// left in one of them or under one key is reported.
func TestTransportsAndKeysCountTogether(t *testing.T) {
	r := newRig(t)
	policy := headway.Policy{Name: "p", Hosts: []string{"*"}, Rules: []headway.Rule{{Name: "key", Limit: limiter.PerHour(9), Key: headway.FromCallKey}}}
	for i := range 3 {
		second := *r
		var err error
		if second.Observer, err = otelheadway.NewObserver(otelheadway.WithMeterProvider(r.meters)); err != nil {
			t.Fatal(err)
		}
		tr := second.transport(service{}, policy)
		defer runtime.KeepAlive(tr)
		for n := range i + 2 {
			if err := send(tr, headway.WithCall(t.Context(), headway.Call{Key: fmt.Sprint("k", n/2)}), url); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.wantSeries(
		"headway.decisions{headway.outcome=started} 9", "headway.wait.duration{headway.outcome=started} 9 0s", "headway.amplification{} 1",
		"headway.units.spent{headway.rule=key headway.source=client} 9", "headway.remaining{headway.rule=key} 7",
		"headway.waiting{} 0", "headway.in_flight{} 0", "headway.pause.remaining{} 0",
	)
}

// A counting provider counts the instruments and callbacks that are asked for.
type countingProvider struct {
	noop.MeterProvider
	made *atomic.Int64
}

type countingMeter struct {
	noop.Meter
	made *atomic.Int64
}

func (p *countingProvider) Meter(string, ...metric.MeterOption) metric.Meter {
	return countingMeter{made: p.made}
}

func (m countingMeter) Int64ObservableCounter(name string, o ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	m.made.Add(1)
	return m.Meter.Int64ObservableCounter(name, o...)
}

func (m countingMeter) RegisterCallback(f metric.Callback, o ...metric.Observable) (metric.Registration, error) {
	m.made.Add(1)
	return m.Meter.RegisterCallback(f, o...)
}

// heap returns how many bytes are in use.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Instruments are made once, and unused Transports are forgotten even without a
// collection.
func TestC84_TransportsLeaveNothing(t *testing.T) {
	made := new(atomic.Int64)
	provider := &countingProvider{made: made}
	round := func(n int) {
		for range n {
			o, err := otelheadway.NewObserver(otelheadway.WithMeterProvider(provider))
			if err != nil {
				t.Fatal(err)
			}
			tr, err := headway.NewTransport(service{}, headway.Config{Observer: o, Policies: []headway.Policy{{
				Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(9)},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := send(tr, t.Context(), url); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(100)
	instruments, before := made.Load(), heap()
	round(10_000)
	if got := made.Load(); got != instruments || got == 0 {
		t.Errorf("%d instruments and callbacks after the first 100 transports, %d after 10,100; want the same number", instruments, got)
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes over 10,000 transports, want at most 1 MiB", grown)
	}
}

// A panic of one observer affects its own request only: the others are counted, and
// every slot comes back.
func TestPanicOfAnotherObserver(t *testing.T) {
	r := newRig(t)
	var n atomic.Int64
	bad := headway.ObserverFunc(func(context.Context, headway.Event) {
		if n.Add(1)%10 == 0 {
			panic("no")
		}
	})
	tr, err := headway.NewTransport(service{}, headway.Config{Observer: headway.MultiObserver(bad, r.Observer), Policies: []headway.Policy{{
		Name: "p", Hosts: []string{"*"}, MaxInFlight: 3, Limits: []limiter.Limit{limiter.PerSecond(1_000_000)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var panics, sent atomic.Int64
	for range 1000 {
		all.Go(func() {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			if err := send(tr, t.Context(), url); err != nil {
				t.Error(err)
			}
			sent.Add(1)
		})
	}
	all.Wait()
	if got := r.sum("headway.decisions"); got != sent.Load() || panics.Load() != 100 {
		t.Errorf("%d decisions of %d sent, %d panics; want each sent one, and 100 panics", got, sent.Load(), panics.Load())
	}
	if got := r.sum("headway.in_flight"); got != 0 {
		t.Errorf("%d in flight after all are back", got)
	}
}

// The context goes to the SDK, which takes the span for an exemplar.
func TestExemplars(t *testing.T) {
	r := newRig(t)
	tr := r.transport(service{}, headway.Policy{Name: "p", Hosts: []string{"*"}})
	ctx, span := r.tracer.Start(t.Context(), "caller")
	if err := send(tr, ctx, url); err != nil {
		t.Fatal(err)
	}
	span.End()
	id := span.SpanContext().SpanID()
	for _, p := range r.collect()["headway.wait.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
		for _, e := range p.Exemplars {
			if slices.Equal(e.SpanID, id[:]) {
				return
			}
		}
	}
	t.Error("no exemplar with the caller's span")
}

func TestNewObserver(t *testing.T) {
	if _, err := otelheadway.NewObserver(otelheadway.WithMaxHosts(0)); err == nil || err.Error() != "otelheadway: WithMaxHosts(0): want a positive number" {
		t.Errorf("got %v for a bound of 0", err)
	}
	for _, fails := range []error{errors.New("no instrument"), errors.New("no callback")} {
		provider := failingProvider{fails: fails}
		if _, err := otelheadway.NewObserver(otelheadway.WithMeterProvider(provider)); !errors.Is(err, fails) {
			t.Errorf("got %v, want that of the provider, %v", err, fails)
		}
	}
	// A provider that cannot be compared is none to share counts by.
	if _, err := otelheadway.NewObserver(otelheadway.WithMeterProvider(uncomparable{new(noop.MeterProvider), nil})); err != nil {
		t.Error(err)
	}
}

type uncomparable struct {
	*noop.MeterProvider
	_ func()
}

type failingProvider struct {
	noop.MeterProvider
	fails error
}

type failingMeter struct {
	noop.Meter
	fails error
}

func (p failingProvider) Meter(string, ...metric.MeterOption) metric.Meter {
	return failingMeter{fails: p.fails}
}

func (m failingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if m.fails.Error() == "no instrument" {
		return nil, m.fails
	}
	return noop.Float64Histogram{}, nil
}

func (m failingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, m.fails
}

// Without options the global providers count, also one that comes later.
func TestGlobalProviders(t *testing.T) {
	o, err := otelheadway.NewObserver()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	otel.SetMeterProvider(r.meters)
	o.Observe(t.Context(), headway.Event{Kind: headway.EventStart, Policy: "p", Host: "api.test"})
	r.Observe(t.Context(), headway.Event{Kind: headway.EventStart, Policy: "p", Host: "api.test"})
	if got := r.sum("headway.decisions"); got != 2 {
		t.Errorf("got %d decisions, want 2: one by the global provider, one by its own name", got)
	}
}

// Invalid numbers in events break nothing.
func TestOddEvents(t *testing.T) {
	r := newRig(t)
	for _, e := range []headway.Event{
		{Kind: 0}, {Kind: 200}, {Kind: headway.EventRefused, Reason: 200}, {Kind: headway.EventLearned, Rule: "r", Drift: -5},
		{Kind: headway.EventStart, Cost: math.MaxInt64, Rule: "r"},
	} {
		r.Observe(t.Context(), e)
	}
	if got := r.sum("headway.decisions", attribute.String("headway.reason", "unknown")); got != 1 {
		t.Errorf("got %d refusals for an unknown reason, want 1", got)
	}
}

// The breaker's state, its changes and its refusals.
func TestS81_Breaker(t *testing.T) {
	r := newRig(t)
	tr := r.transport(service{}, headway.Policy{Name: "p", Hosts: []string{"*"}, Breaker: &breaker.Config{}})
	b, err := tr.Breaker("api.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := send(tr, t.Context(), url); err != nil {
		t.Fatal(err)
	}
	value := func(name, attr string) (n int64) {
		switch data := r.collect()[name].Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				if strings.Contains(p.Attributes.Encoded(attribute.DefaultEncoder()), attr) {
					n += p.Value
				}
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				n += p.Value
			}
		}
		return n
	}
	if got := value("headway.breaker.state", ""); got != 0 {
		t.Errorf("closed is %d", got)
	}
	b.Trip(errors.New("down"), 0)
	if err := send(tr, t.Context(), url); !errors.Is(err, headway.ErrOpen) {
		t.Errorf("got %v, want it refused", err)
	}
	if got := value("headway.breaker.state", ""); got != 2 {
		t.Errorf("open is %d", got)
	}
	if got := value("headway.breaker.transitions", "headway.state=open"); got != 1 {
		t.Errorf("opened %d times", got)
	}
	if got := value("headway.decisions", "headway.reason=open"); got != 1 {
		t.Errorf("refused %d", got)
	}
}
