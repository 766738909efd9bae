package headway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
	"github.com/headway-go/headway/store"
)

// No loop makes more than 4 * (waiters + rules) + 64 steps, in any test of this package.
// Rules are those of a request and the limits announced of it, which are 8 for each
// budget and audience at most.
func init() {
	const rules = 16
	line.WatchSteps(func(steps, waiting int) {
		if most := 4*(waiting+rules) + 64; steps > most {
			panic(fmt.Sprintf("%d steps with %d waiting, want %d at most", steps, waiting, most))
		}
	})
}

// Anything is a server that announces anything, and requests to it. First a crowd comes,
// each request after the one before it. When all have ended, there are a few requests
// one after the other, and then a few at once.
type anything struct {
	policy  headway.Policy
	replies []anyReply // in turn, over and over
	crowd   []anyAsk
	lone    int
	atOnce  int
}

// An anyReply is one response. In a value of its lines ("Name: value") @5 is the instant
// 5 s from now, in seconds since 1970, and @@5 in the form of RFC 3339.
type anyReply struct {
	status int
	lines  []string
	takes  time.Duration
}

// An anyAsk is a request, or where it waits for so many units a Quota's.
type anyAsk struct {
	after             time.Duration // the one before it
	method            string
	key               string
	cost              int64
	maxWait, deadline time.Duration // zero: none
	quota             bool
}

// instants are in the lines of an anyReply.
var instants = regexp.MustCompile(`@@?-?[0-9]{1,9}`)

func (r *anyReply) response(req *http.Request) *http.Response {
	now := time.Now()
	resp := ok(req)
	resp.StatusCode = r.status
	for _, l := range r.lines {
		name, value, _ := strings.Cut(l, ": ")
		value = instants.ReplaceAllStringFunc(value, func(s string) string {
			n, _ := strconv.ParseInt(strings.TrimLeft(s, "@"), 10, 64)
			at := now.Add(time.Duration(n) * time.Second)
			if strings.HasPrefix(s, "@@") {
				return at.UTC().Format(time.RFC3339)
			}
			return strconv.FormatInt(at.Unix(), 10)
		})
		resp.Header.Add(name, value)
	}
	return resp
}

// An anyServer plays the replies, and remembers the longest time for which one of them
// may hold up the next request.
type anyServer struct {
	*anything
	mu      sync.Mutex // guards following fields
	n       int
	longest time.Duration
}

type startKey struct{}

func (s *anyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if start, is := req.Context().Value(startKey{}).(*time.Time); is {
		*start = time.Now()
	}
	s.mu.Lock()
	r := &s.replies[s.n%len(s.replies)]
	s.n++
	s.mu.Unlock()
	select {
	case <-time.After(r.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	resp := r.response(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, s.holds(resp))
	return resp, nil
}

// holds returns for how long a response may hold up a lone request: until the latest
// reset that it announces, for as long as the window or the pause is. A reset in whole
// seconds is believed a second late. What is known of a limit without a window lasts a
// minute: after its reset, or where there is none. A refusal without a time pauses for
// five at most.
func (s *anyServer) holds(resp *http.Response) (longest time.Duration) {
	signal := retryafter.Read(resp.StatusCode, resp.Header, time.Now())
	most := s.policy.Server.MaxPause
	if most == 0 {
		most = 24 * time.Hour
	}
	for _, l := range signal.Limits() {
		if !l.HasRemaining {
			continue
		}
		reset := min(most, l.Reset) + time.Second
		if !l.HasWindow || !l.HasReset {
			reset += time.Minute
		}
		longest = max(longest, reset, min(most, l.Window)*65/64)
	}
	if signal.HasRetryAfter { // with which a limit that is exhausted ends
		longest = max(longest, min(most, signal.RetryAfter))
	}
	if signal.Throttled {
		wait, timed := signal.Wait()
		if !timed || wait == 0 || signal.Documented {
			wait = max(wait, 5*time.Minute)
		}
		longest = max(longest, min(most, wait))
	}
	return longest
}

// bound returns when a lone request starts at the latest: when the server allows it by
// holds, or all units of the rules are back. After a pause it may be the second to start,
// and after a reset the one before it may have gone alone, to learn what is left, for
// four times as long as responses take.
func (s *anyServer) bound() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := s.longest
	for _, r := range s.policy.Rules {
		per := r.Limit.Per
		if r.Limit.Law == limiter.Sliding {
			per *= 2 // an estimate: what was used at the end of a window counts throughout the next
		}
		bound = max(bound, per*65/64)
	}
	return bound + 2*time.Second + min(4*s.latency(), 15*time.Second)
}

// latency returns how long the slowest response takes.
func (a *anything) latency() (d time.Duration) {
	for _, r := range a.replies {
		d = max(d, r.takes)
	}
	return d
}

// play plays it, and returns what was wrong.
func (a *anything) play(t *testing.T, in place) (faults []string) {
	var mu sync.Mutex // guards faults
	fault := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	bubble(t, func() {
		srv := &anyServer{anything: a}
		a.policy.Hosts = []string{"*"}
		cfg := headway.Config{Policies: []headway.Policy{a.policy}}
		if in != inMemory {
			cfg.Store, cfg.Secret = new(store.Memory), []byte("of anything")
		}
		tr, err := headway.NewTransport(srv, cfg)
		if err != nil {
			t.Error(err)
			return
		}
		var all sync.WaitGroup
		for i, c := range a.crowd {
			time.Sleep(c.after)
			all.Go(func() {
				if err := a.send(tr, c); err != nil {
					fault("number %d of the crowd, %+v: %v", i, c, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		// What is reserved in the store is returned, and what was announced is there.
		time.Sleep(10 * time.Second)
		one := func(i int, bound time.Duration) time.Duration {
			var started time.Time
			arrived := time.Now()
			resp, err := tr.RoundTrip(ask{ctx: context.WithValue(context.Background(), startKey{}, &started), call: headway.Call{Key: "k", Cost: int64(1 + i%2), MaxWait: headway.WaitForever}}.request(""))
			if err != nil {
				fault("lone number %d: %v", i, err)
				return 0
			}
			resp.Body.Close()
			if took := started.Sub(arrived); bound > 0 && took > bound {
				fault("lone number %d started after %v, want it by %v", i, took, bound)
			}
			return started.Sub(arrived)
		}
		for i := range a.lone {
			one(i, srv.bound())
			time.Sleep(time.Duration(i) * 700 * time.Millisecond)
		}
		waits := make([]time.Duration, a.atOnce)
		for i := range waits {
			all.Go(func() { waits[i] = one(i, 0) })
			synctest.Wait()
		}
		all.Wait()
		for i, wait := range waits {
			if bound := time.Duration(i+1) * (srv.bound() + a.latency()); wait > bound {
				fault("number %d of %d at once started after %v, want it by %v", i, a.atOnce, wait, bound)
			}
		}
		time.Sleep(10 * time.Second)
		for _, h := range tr.Snapshot() {
			if h.Waiting != 0 || h.InFlight != 0 {
				fault("%d are in line and %d in flight at the end", h.Waiting, h.InFlight)
			}
		}
	})
	return faults
}

// send sends a request, and returns an error if it did not end as it must.
func (a *anything) send(tr *headway.Transport, c anyAsk) error {
	var started time.Time
	ctx := context.WithValue(context.Background(), startKey{}, &started)
	if c.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.deadline)
		defer cancel()
	}
	call := headway.Call{Key: c.key, Cost: c.cost, MaxWait: c.maxWait}
	arrived := time.Now()
	var err error
	if c.quota && len(a.policy.Rules) > 0 && a.policy.Rules[0].Key == nil {
		q, e := tr.Quota("api.test", a.policy.Rules[0].Name, "")
		if e != nil {
			return e
		}
		err = q.Wait(headway.WithCall(ctx, call), 1)
		started = time.Now()
	} else {
		var resp *http.Response
		resp, err = tr.RoundTrip(ask{method: c.method, ctx: ctx, call: call}.request(""))
		if err == nil {
			resp.Body.Close()
		}
	}
	took := time.Since(arrived)
	if c.deadline > 0 && took > c.deadline {
		return fmt.Errorf("it is back after %v, with %v", took, err)
	}
	if c.maxWait > 0 {
		if e := new(headway.ThrottledError); errors.As(err, &e) && took > c.maxWait {
			return fmt.Errorf("it is refused after %v", took)
		}
		if !started.IsZero() && started.Sub(arrived) > c.maxWait+2*time.Millisecond {
			return fmt.Errorf("it has started after %v", started.Sub(arrived))
		}
	}
	if err != nil && !errors.Is(err, headway.ErrThrottled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Whatever a server announces, a request with a deadline returns by it, no loop is as
// long as a number that the server sends, and a request whose context allows it starts no
// later than the longest reset, window or pause that a response has announced, or one
// period of the rules, after it arrived. Of several at once each waits once more for that,
// since each response may announce it anew.
func TestAnythingAnnounced(t *testing.T) {
	for _, in := range []place{inMemory, inStore} {
		t.Run(in.String(), func(t *testing.T) { checkAnything(t, in) })
	}
}
