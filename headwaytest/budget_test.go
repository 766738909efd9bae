package headwaytest_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// byCost returns rules under which a request costs what its header says.
func byCost(limits ...limiter.Limit) []headway.Rule {
	rules := make([]headway.Rule, len(limits))
	for i, l := range limits {
		rules[i] = headway.Rule{Limit: l, Cost: func(req *http.Request) (int64, error) {
			return strconv.ParseInt(req.Header.Get("Cost"), 10, 64)
		}}
	}
	return rules
}

// arrive sends a request of that cost to a Vendor without latency and returns
// how long the Vendor wants it to wait.
func arrive(t rapid.TB, v *headwaytest.Vendor, cost int64) time.Duration {
	t.Helper()
	var wait time.Duration
	v.Script = func(a headwaytest.Arrival, _ *headwaytest.Reply) { wait = a.Wait }
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cost", strconv.FormatInt(cost, 10))
	resp, err := v.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if refused := resp.StatusCode == http.StatusTooManyRequests; refused != (wait > 0) {
		t.Errorf("got status %d with a wait of %v", resp.StatusCode, wait)
	}
	return wait
}

// A judgement is what a law must say of a request.
type judgement struct {
	at   time.Duration
	cost int64
	wait time.Duration // zero: let in
}

// TestLaws checks the Vendor's counting by hand. Time begins at midnight of
// 1 January 2000, a Saturday.
func TestLaws(t *testing.T) {
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	const s, h, day = time.Second, time.Hour, 24 * time.Hour
	for name, tt := range map[string]struct {
		limit      limiter.Limit
		judgements []judgement
	}{
		"window": {limiter.Limit{N: 3, Per: 10 * s}, []judgement{
			{0, 1, 0},
			{6 * s, 2, 0},
			{6 * s, 1, 4 * s},
			{6 * s, 2, 10 * s},
			{6 * s, 4, limiter.Never},
			{10*s - 1, 1, 1},
			{10 * s, 1, 0}, // the first is one period old
			{10 * s, 1, 6 * s},
			{16 * s, 2, 0},
		}},
		"strict window counts arrivals as any": {limiter.Limit{N: 1, Per: s, Strict: true}, []judgement{
			{0, 1, 0}, {s - 1, 1, 1}, {s, 1, 0},
		}},
		"nothing passes": {limiter.Blocked(), []judgement{{0, 1, limiter.Never}, {0, 0, 0}}},
		"bucket": {limiter.Limit{N: 1, Per: s, Law: limiter.Bucket, Burst: 3}, []judgement{
			{0, 2, 0},
			{0, 2, s},
			{0, 1, 0},
			{0, 3, 3 * s},
			{0, 4, limiter.Never},
			{s / 2, 1, s / 2}, // being refused costs nothing
			{2500 * time.Millisecond, 2, 0},
			{2500 * time.Millisecond, 1, s / 2}, // half a unit is left
			{100 * s, 3, 0},
			{100 * s, 1, s}, // and no more than Burst
		}},
		"bucket of N": {limiter.Limit{N: 3, Per: 10 * time.Nanosecond, Law: limiter.Bucket}, []judgement{
			// A unit comes every 3.33 ns; the first began in the nanosecond before 0.
			{0, 3, 0}, {2, 1, 1}, {3, 1, 0}, {3, 2, 7}, {6, 1, 0}, {9, 1, 1}, {10, 1, 0}, {10, 1, 3}, {13, 1, 0}, {16, 1, 0}, {20, 1, 0},
		}},
		"spaced": {limiter.Limit{N: 3, Per: 10 * time.Nanosecond, Law: limiter.Spaced}, []judgement{
			{0, 1, 0}, {0, 1, 3}, {3, 1, 0}, {5, 1, 1}, {6, 1, 0}, {9, 1, 1}, {10, 2, 0}, {15, 1, 1}, {16, 1, 0}, {100, 3, 0}, {109, 1, 1}, {110, 1, 0},
		}},
		"sliding": {limiter.Limit{N: 100, Per: 60 * s, Law: limiter.Sliding}, []judgement{
			{0, 80, 0},
			{100 * s, 50, 0},                      // 40 s into the second window, a third of the first counts
			{100 * s, 23, 0},                      // 26.67 + 50 + 23 are 99.67
			{100 * s, 1, 500 * time.Millisecond},  // when 80 x 19.5/60 = 26 of the first count
			{239 * s, 100, 0},                     // in the fourth window nothing of the second counts
			{239 * s, 1, 1600 * time.Millisecond}, // when 100 x 59.4/60 = 99 count
		}},
		"minute": {limiter.Limit{N: 2, Law: limiter.Calendar, Unit: limiter.Minute}, []judgement{
			{59 * s, 2, 0}, {59 * s, 1, s}, {60*s - 1, 1, 1}, {60 * s, 2, 0}, {60 * s, 3, limiter.Never},
		}},
		"hour": {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Hour}, []judgement{
			{h / 2, 1, 0}, {h / 2, 1, h / 2}, {h, 1, 0},
		}},
		"day": {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Day}, []judgement{
			{h, 1, 0}, {2 * h, 1, 22 * h}, {day, 1, 0},
		}},
		"week begins on Monday": {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Week}, []judgement{
			{0, 1, 0}, {0, 1, 2 * day}, {2 * day, 1, 0}, {2 * day, 1, 7 * day},
		}},
		"month": {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Month}, []judgement{
			{0, 1, 0}, {0, 1, 31 * day}, {31 * day, 1, 0}, {31 * day, 1, 29 * day},
		}},
		"day of 23 hours": {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Day, Location: losAngeles}, []judgement{
			{0, 1, 0},
			{0, 1, 8 * h},             // there it is still 31 December
			{92*day + 8*h, 1, 0},      // midnight of 2 April
			{92*day + 8*h, 1, 23 * h}, // on which the clocks go forward
			{92*day + 31*h, 1, 0},     // midnight of 3 April
			{92*day + 31*h, 1, 24 * h},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, begin := &headwaytest.Vendor{Rules: byCost(tt.limit)}, time.Now()
				for _, j := range tt.judgements {
					time.Sleep(time.Until(begin.Add(j.at)))
					if got := arrive(t, v, j.cost); got != j.wait {
						t.Errorf("cost %d at %v: got a wait of %v, want %v", j.cost, j.at, got, j.wait)
					}
				}
			})
		})
	}
}

// drawLimit draws a limit of any law, small enough for its borders to be met.
func drawLimit(t *rapid.T) limiter.Limit {
	n := rapid.Int64Range(0, 6).Draw(t, "n")
	if n == 0 {
		return limiter.Blocked()
	}
	l := limiter.Limit{
		N:   n,
		Law: rapid.SampledFrom([]limiter.Law{limiter.Window, limiter.Bucket, limiter.Spaced, limiter.Sliding, limiter.Calendar}).Draw(t, "law"),
	}
	if l.Law == limiter.Calendar {
		l.Unit = rapid.SampledFrom([]limiter.Unit{limiter.Minute, limiter.Hour, limiter.Day, limiter.Week, limiter.Month}).Draw(t, "unit")
		return l
	}
	l.Per = time.Duration(rapid.Int64Range(1, 20).Draw(t, "per"))
	if l.Law == limiter.Bucket {
		l.Burst = rapid.Int64Range(0, 6).Draw(t, "burst")
	}
	if l.Law == limiter.Bucket || l.Law == limiter.Spaced {
		l.Per *= time.Duration(l.N) // slots of whole nanoseconds
	}
	return l
}

// A step is one request: after how long, and at which cost.
type step struct {
	after time.Duration
	// until, where the request before has to wait: 0 leaves after as it is, 1 is
	// the last instant of that wait, 2 its end.
	until int
	cost  int64
}

func drawStep(t *rapid.T) step {
	return step{
		after: time.Duration(rapid.Int64Range(0, 30).Draw(t, "after")),
		until: rapid.IntRange(0, 2).Draw(t, "until"),
		cost:  rapid.Int64Range(0, 5).Draw(t, "cost"),
	}
}

// TestVendorCountsAsTheLimiterDoes compares two implementations of the laws that
// share nothing: both let in the same requests, and foretell the same wait.
func TestVendorCountsAsTheLimiterDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := rapid.SliceOfN(rapid.Custom(drawLimit), 1, 3).Draw(rt, "limits")
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 30).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(limits...)
			if err != nil {
				t.Fatal(err)
			}
			v, begin := &headwaytest.Vendor{Rules: byCost(limits...)}, time.Now()
			var delay time.Duration                     // of the request before
			steps = append([]step{{cost: 1}}, steps...) // the first use of all, so that windows begin together
			for _, s := range steps {
				if s.until > 0 && 0 < delay && delay < limiter.Never {
					s.after = delay - 2 + time.Duration(s.until)
				}
				time.Sleep(s.after)
				delay = l.Delay(s.cost)
				wait, allowed := arrive(t, v, s.cost), l.Allow(s.cost)
				if wait != delay || allowed != (wait == 0) {
					rt.Errorf("cost %d at %v: the vendor says %v, the limiter %v, allowed %t", s.cost, time.Since(begin), wait, delay, allowed)
				}
			}
		})
	})
}

// TestVendorLetsInWhatTheLimiterDoes is about slots between two nanoseconds. A
// limiter may take the one before or the one after; the Vendor must allow both,
// and nothing that comes earlier.
func TestVendorLetsInWhatTheLimiterDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(1, 30).Draw(rt, "n")
		limit := limiter.Limit{
			N:   n,
			Per: time.Duration(rapid.Int64Range(2*n, 10*n).Draw(rt, "per")),
			Law: rapid.SampledFrom([]limiter.Law{limiter.Bucket, limiter.Spaced}).Draw(rt, "law"),
		}
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(limit)
			if err != nil {
				t.Fatal(err)
			}
			v, begin := &headwaytest.Vendor{Rules: byCost(limit)}, time.Now()
			for _, s := range steps {
				if s.until == 0 {
					time.Sleep(s.after)
				}
				cost := min(s.cost, n)
				delay := l.Delay(cost)
				if delay >= 2 {
					time.Sleep(delay - 2)
					if wait := arrive(t, v, cost); wait == 0 {
						rt.Errorf("cost %d at %v: let in two nanoseconds too early", cost, time.Since(begin))
					}
					delay = 2
				}
				time.Sleep(delay)
				if allowed, wait := l.Allow(cost), arrive(t, v, cost); !allowed || wait > 0 {
					rt.Errorf("cost %d at %v: the limiter says %t, the vendor %v", cost, time.Since(begin), allowed, wait)
				}
			}
		})
	})
}
