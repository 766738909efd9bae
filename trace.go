package headway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/show"
)

// A Trace records what happens to the requests of one context, in the manner of
// net/http/httptrace: put it into a context with WithTrace, and read it when the
// requests have ended. A redirect and a retry are separate requests. The zero Trace is
// empty. Goroutines may share it; it must not be copied after its first use.
type Trace struct {
	mu       sync.Mutex // guards following fields
	requests []TracedRequest
}

// A TracedRequest is the record of one request.
type TracedRequest struct {
	// Policy and Host name the line.
	Policy, Host string
	// Attempt is which attempt of its call it was; see AttemptFrom.
	Attempt int
	// Arrived is when the Transport received the request, Started when the base
	// transport did, and Answered when the base transport returned the headers of the
	// response or an error. The zero time means that it did not happen.
	Arrived, Started, Answered time.Time
	// Place is the number of requests ahead of it in line when it arrived.
	Place int
	// Wait is the time from its arrival to its start or its refusal.
	Wait time.Duration
	// Causes are what delayed it, in the order in which they began; their times add
	// up to Wait exactly.
	Causes []WaitCause
	// Away is true when Config.Store was down, so that the policy's Store.Down decided.
	Away bool
	// Status is the status of its response; zero for none.
	Status int
	// Err is the error that its caller got. String and MarshalJSON show it without the
	// queries and the user information of URLs.
	Err error
}

// A WaitCause is one reason for which a request waited.
type WaitCause struct {
	// Kind is the reason.
	Kind CauseKind
	// For is the time for which it was the reason.
	For time.Duration
	// Rule and KeyDigest name the budget; empty where the reason was none.
	Rule, KeyDigest string
	// Ahead is the number of requests with the same needs that were ahead of it in line
	// when it arrived (CauseBehind).
	Ahead int
	// Status is the status of the response that requested the pause (CausePause).
	Status int
	// Dialect is the dialect of that response.
	Dialect string
}

// A CauseKind is why a request waited. Of several reasons at one time the first of
// this list counts.
type CauseKind uint8

const (
	// CausePause: the server requested a pause.
	CausePause CauseKind = iota + 1
	// CauseBehind: requests with the same needs were ahead of it.
	CauseBehind
	// CauseStore: Config.Store had not responded for the first time. Later round trips
	// count for what they ask about.
	CauseStore
	// CauseBreaker: a breaker limited the number of starts.
	CauseBreaker
	// CauseSlot: no slot of MaxInFlight was free.
	CauseSlot
	// CauseRestart: after a pause the requests start one by one.
	CauseRestart
	// CauseLearned: the server had announced that no units were left.
	CauseLearned
	// CauseLimit: its rule or limit had no room.
	CauseLimit
)

var causeKinds = [...]string{"", "pause", "behind", "store", "breaker", "slot", "restart", "learned", "limit"}

// String returns the kind as one lower-case word.
func (k CauseKind) String() string {
	if int(k) < len(causeKinds) && k > 0 {
		return causeKinds[k]
	}
	return "unknown"
}

// WithTrace returns a context whose requests are recorded in t. It replaces a
// Trace that ctx already carries. A request whose Call has Bypass, or whose host
// has no policy, is not recorded.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return context.WithValue(ctx, carriedKey{}, &carried{CallFrom(ctx), t})
}

// Requests returns the records so far, in the order in which they ended.
func (t *Trace) Requests() []TracedRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.requests)
	for i := range list {
		list[i].Causes = slices.Clone(list[i].Causes)
	}
	return list
}

func (t *Trace) add(r *TracedRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, *r)
}

// String returns one sentence for each request.
func (t *Trace) String() string {
	var s []string
	for _, r := range t.Requests() {
		s = append(s, r.String())
	}
	return strings.Join(s, "\n")
}

// MarshalJSON returns the records as a JSON array; see TracedRequest.MarshalJSON.
func (t *Trace) MarshalJSON() ([]byte, error) {
	list := t.Requests()
	if list == nil {
		list = []TracedRequest{}
	}
	return json.Marshal(list)
}

// String describes in one sentence what delayed the request and how it ended, with
// rounded times.
func (r TracedRequest) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", r.Host)
	if r.Attempt > 0 {
		fmt.Fprintf(&b, "attempt %d ", r.Attempt)
	}
	switch {
	case r.Wait == 0 && r.Started.IsZero():
		b.WriteString("refused at once")
	case r.Started.IsZero() && isEnd(r.Err):
		fmt.Fprintf(&b, "gave up after %v", show.Duration(r.Wait))
	case r.Started.IsZero():
		fmt.Fprintf(&b, "refused after %v", show.Duration(r.Wait))
	case r.Wait == 0:
		b.WriteString("started at once")
	default:
		fmt.Fprintf(&b, "waited %v", show.Duration(r.Wait))
	}
	for i, c := range r.Causes {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%v %v", sep, show.Duration(c.For), c)
	}
	if r.Away {
		b.WriteString("; decided without the store")
	}
	switch {
	case r.Status > 0:
		fmt.Fprintf(&b, "; response %d after %v", r.Status, show.Duration(r.Answered.Sub(r.Started)))
	case r.Err != nil:
		fmt.Fprintf(&b, "; %s", show.Text(r.Err.Error()))
	}
	b.WriteByte('.')
	return b.String()
}

// isEnd reports whether err is the end of a context.
func isEnd(err error) bool { return err == context.Canceled || err == context.DeadlineExceeded }

// causeTexts describe the kinds that have one text.
var causeTexts = map[CauseKind]string{
	CauseStore:   "for the store",
	CauseBreaker: "for a breaker that limits starts",
	CauseSlot:    "for a slot in flight",
	CauseRestart: "for its turn in the restart after a pause",
	CauseLearned: "until the server has units left,",
}

// String describes the cause, as in "behind 3 others of rule …", which follows a time.
func (c WaitCause) String() string {
	var b strings.Builder
	switch c.Kind {
	case CausePause:
		b.WriteString("because the server requested a pause")
		if c.Status > 0 {
			fmt.Fprintf(&b, " with a %d", c.Status)
		}
		if c.Dialect != "" {
			fmt.Fprintf(&b, " (%s)", c.Dialect)
		}
		return b.String()
	case CauseBehind:
		fmt.Fprintf(&b, "behind %d other", c.Ahead)
		if c.Ahead != 1 {
			b.WriteByte('s')
		}
		if c.Rule != "" {
			b.WriteString(" of")
		}
	case CauseLimit:
		b.WriteString("for its own turn")
		if c.Rule != "" {
			b.WriteString(" under")
		}
	default:
		b.WriteString(causeTexts[c.Kind])
	}
	if c.Rule != "" {
		fmt.Fprintf(&b, " rule %q", c.Rule)
	}
	if c.KeyDigest != "" {
		fmt.Fprintf(&b, " for key %s", c.KeyDigest)
	}
	return b.String()
}

// MarshalJSON returns the record as an object, with times in RFC 3339 and durations in
// seconds. It omits what did not happen.
func (r TracedRequest) MarshalJSON() ([]byte, error) {
	type cause struct {
		Kind      string  `json:"kind"`
		Seconds   float64 `json:"seconds"`
		Rule      string  `json:"rule,omitempty"`
		KeyDigest string  `json:"key_digest,omitempty"`
		Ahead     int     `json:"ahead,omitempty"`
		Status    int     `json:"status,omitempty"`
		Dialect   string  `json:"dialect,omitempty"`
	}
	out := struct {
		Policy   string    `json:"policy"`
		Host     string    `json:"host"`
		Attempt  int       `json:"attempt"`
		Arrived  time.Time `json:"arrived"`
		Started  time.Time `json:"started,omitzero"`
		Answered time.Time `json:"answered,omitzero"`
		Place    int       `json:"place"`
		Wait     float64   `json:"wait_seconds"`
		Causes   []cause   `json:"causes"`
		Away     bool      `json:"away,omitempty"`
		Status   int       `json:"status,omitempty"`
		Err      string    `json:"error,omitempty"`
	}{r.Policy, r.Host, r.Attempt, r.Arrived, r.Started, r.Answered, r.Place, r.Wait.Seconds(), []cause{}, r.Away, r.Status, ""}
	for _, c := range r.Causes {
		out.Causes = append(out.Causes, cause{c.Kind.String(), c.For.Seconds(), c.Rule, c.KeyDigest, c.Ahead, c.Status, c.Dialect})
	}
	if r.Err != nil {
		out.Err = show.Text(r.Err.Error())
	}
	return json.Marshal(out)
}

// A record is a TracedRequest in the making.
type record struct {
	TracedRequest
	trace    *Trace
	line     line.Journal
	base     time.Time // when the request was handed to the base transport; zero: not
	fellBack bool      // it has waited in the line of a store that went down
}

func (v *request) newRecord(t *Trace) *record {
	return &record{trace: t, TracedRequest: TracedRequest{
		Policy: v.policy.name, Host: v.name, Attempt: AttemptFrom(v.req.Context()), Arrived: time.Now(),
	}}
}

// started notes that the request is about to be sent.
func (r *record) started(v *request) {
	if r != nil {
		r.Started = r.Arrived.Add(v.Waited)
		r.base = time.Now()
	}
}

// responded notes that the base transport has returned.
func (r *record) responded() {
	if r != nil {
		r.Answered = r.Started.Add(time.Since(r.base))
	}
}

// leftStore notes what has held the request up in the line of a store, which it
// now leaves for that in memory.
func (r *record) leftStore(v *request) {
	if r != nil && !r.fellBack && v.Waited > 0 {
		r.addCauses(v, v.Waited)
		r.Wait, r.Place, r.fellBack = v.Waited, r.line.Place, true
		r.line = line.Journal{}
	}
}

// end adds the record to its trace.
func (r *record) end(v *request, resp *http.Response, err error) {
	r.addCauses(v, v.Waited-r.Wait)
	if !r.fellBack {
		r.Place = r.line.Place
	}
	r.Wait = max(r.Wait, v.Waited) // a panic leaves the latter at zero
	r.Away, r.Err = v.Down != nil, err
	if resp != nil && !r.Started.IsZero() {
		r.Status = resp.StatusCode
	}
	r.trace.add(&r.TracedRequest)
}

// addCauses adds what has held the request up for the time that it has waited in
// a line.
func (r *record) addCauses(v *request, waited time.Duration) {
	if waited > 0 {
		r.Causes = v.causes(r.Causes, &r.line, r.line.Arrived+waited)
	}
}

// causes divides the time from j.Arrived to end among its reasons, and adds them
// to a list.
func (v *request) causes(list []WaitCause, j *line.Journal, end time.Duration) []WaitCause {
	own := v.ownCause(j)
	behind := WaitCause{Kind: CauseBehind, Ahead: j.Ahead, Rule: own.Rule, KeyDigest: own.KeyDigest}
	at := j.Arrived
	for at < end {
		c, until := own, end
		switch s, paused := pausedAt(j.Pauses, at); {
		case paused:
			c, until = WaitCause{Kind: CausePause, Status: s.Status, Dialect: s.Source}, s.To
		case at < j.FirstResponse:
			c, until = WaitCause{Kind: CauseStore}, j.FirstResponse
		case at < j.Head:
			c, until = behind, j.Head
		case at < j.Late:
			until = j.Late
		case j.Gate:
			c = WaitCause{Kind: CauseBreaker}
		default:
			c = WaitCause{Kind: CauseSlot}
		}
		for _, s := range j.Pauses {
			if s.From > at {
				until = min(until, s.From)
			}
		}
		until = min(until, end)
		if i := slices.IndexFunc(list, func(o WaitCause) bool { return same(o, c) }); i >= 0 {
			list[i].For += until - at
		} else {
			c.For = until - at
			list = append(list, c)
		}
		at = until
	}
	return list
}

// same reports whether two causes differ in nothing but how long they held.
func same(a, b WaitCause) bool {
	a.For = b.For
	return a == b
}

// pausedAt returns the pause that holds at an instant, the last to end of several.
func pausedAt(pauses []line.Span, at time.Duration) (longest line.Span, paused bool) {
	for _, s := range pauses {
		if s.From <= at && at < s.To && s.To > longest.To {
			longest, paused = s, true
		}
	}
	return longest, paused
}

// ownCause returns why the request waited while no request was ahead of it.
func (v *request) ownCause(j *line.Journal) WaitCause {
	switch {
	case j.Bind.Reason == line.ByPause:
		return WaitCause{Kind: CauseRestart}
	case j.Bind.Announced:
		return WaitCause{Kind: CauseLearned, Rule: learnedName(j.Bind.Name)}
	}
	c := WaitCause{Kind: CauseLimit}
	if cl := v.Need(j.Bind.Need); j.Bind.Reason != 0 && cl != nil {
		c.Rule, c.KeyDigest = cl.Rule.Name, v.t.digests.Of(cl.Key)
	}
	return c
}
