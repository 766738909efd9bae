package headway

import (
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A Policy is how the requests to a set of hosts are limited. Each host has its own
// budgets and its own line, unless the policy is Shared. A policy needs at least one
// host; with no other field set it admits everything.
//
// A Policy is configuration: it must not be changed after it has been passed to a
// Transport. To change a Transport's policies, call SetPolicies with new ones.
type Policy struct {
	// Name names the policy in errors and events, and identifies its history in
	// SetPolicies. It must be unique. Empty means the first of Hosts.
	Name string
	// Hosts are the patterns of the hosts that the policy is for:
	// "api.example.com" is that host; "*.example.com" is every host below
	// example.com, but not example.com itself; "*" is every host. A pattern may
	// end in a port, as in "api.example.com:8443" or "[::1]:8080", and then means that
	// port only (80 for http and 443 for https where a URL has none); without one it
	// means every port.
	//
	// For one host the exact pattern beats the longest "*.suffix", which beats "*"; of
	// two patterns that differ only in the port, the one with the port wins. Hosts
	// compare by the address that net/http dials: without case, default port or
	// trailing dot, an international name in any form with the same look-up, an IP
	// address in any spelling. Each pattern may appear in one policy only.
	Hosts []string
	// Shared makes the policy's hosts spend one budget and wait in one line, as if
	// they were one host. Each still has its own Breaker.
	Shared bool
	// Limits apply to every request. Each is a rule without a key, named by its
	// text, such as "50/1s". A request costs each of them Call.Cost units, or 1.
	Limits []limiter.Limit
	// Rules apply to the requests that they match. All rules that match a request
	// apply, and it starts only when all of them and all Limits have room.
	Rules []Rule
	// MaxWait is the wait budget: the longest time that a request may wait in line, for
	// all reasons together. A request that would wait longer is refused immediately; a
	// wait of exactly MaxWait fits. Where the wait cannot be predicted, as for a slot
	// under MaxInFlight or for a Strict unit in flight, the request waits, and is refused
	// when MaxWait is over. Zero means as long as the request's context allows; NoWait
	// means never; OneWindow means the longest period of the limits that apply to the
	// request, at most 5 s. Call.MaxWait overrides it.
	MaxWait time.Duration
	// MaxWaiting is the most requests that may wait in one line. One more is refused
	// immediately, unless another key has more requests in line: then the newest
	// request of the key with the most is refused instead, with the time that it would
	// have waited. A request that starts within a millisecond is never refused in this
	// way. The keys of all rules that match a request count as one key, and all requests
	// without a key as one. It must not be negative; zero means 10,000.
	MaxWaiting int
	// MaxInFlight is the most requests that may be in flight at one time. A request is
	// in flight from its start until its response body is read to its end, is closed or
	// is garbage, or its context ends. Slot availability cannot be predicted, so under
	// MaxInFlight every reported wait is a lower bound (AtLeast). It must not be
	// negative; zero means no cap.
	MaxInFlight int
	// AttemptTimeout is the longest time from a request's start to the headers of its
	// response. It includes neither the time in line nor the time for the body. A
	// request that exceeds it fails with a net.Error whose Timeout is true, which the
	// breaker counts as a failure. The base transport gets a copy of the request with a
	// context of its own, and must observe that. It must not be negative; zero means no
	// timeout.
	AttemptTimeout time.Duration
	// Breaker gives every host a circuit breaker, which ignores the keys of requests;
	// the hosts of a Shared policy have one each too. While it is open, all requests,
	// those in line included, are refused immediately with an *OpenError. When its time
	// is up, the first requests that arrive, or that are in line, are sent as probes,
	// and the others are refused immediately. After it closes, the number of requests
	// that may be waiting for a response is limited: to Probes at first, and to twice as
	// many with each success, until the limit no longer matters. Other requests wait in
	// line, but no longer than ProbeTimeout after the last start. Nil means no breaker.
	Breaker *breaker.Config
	// Classify decides what the end of a request means for the breaker. The response
	// is nil if there is an error. Classify is called without locks, and concurrently;
	// it must not change the response or read its body. Nil means this table:
	//
	//	status 1xx to 4xx                        success, but:
	//	408                                      failure
	//	429, 529                                 ignored: the service throttles
	//	503 with a Retry-After that can be read  ignored: the service throttles
	//	any other throttling response            ignored; see retryafter.Signal.Throttled
	//	501, 505                                 success: the service is up
	//	other status from 500 on                 failure
	//	AttemptTimeout                           failure
	//	the caller's context is over             ignored, whatever the error is
	//	context.Canceled from below              ignored
	//	a refusal by a limiter or Transport      ignored
	//	below, such as an *OpenError
	//	a request that cannot be sent: a bad     ignored: it is the caller's fault
	//	header, method, URL or length
	//	the request's body fails, or is not as   ignored: it is the caller's fault
	//	long as ContentLength says
	//	any other error of the base transport:   failure
	//	refused or reset connections, TLS, DNS,
	//	a host that does not exist, malformed
	//	responses, proxies, its own timeouts
	//	a panic, runtime.Goexit                  ignored
	//	an error while the body is read          ignored: report it by Transport.Breaker
	//
	// The error of a request's body cannot be told from other errors. So where there is
	// a Breaker, a request whose body can fail is passed to the base transport as a
	// shallow copy; a body can fail if it is neither in memory nor can seek. Errors of
	// files are recognized by their type, and those of net/http for a request that
	// cannot be sent by their text.
	//
	// Server.Dialects determine which other responses throttle. With retryafter.None
	// among them, status and headers alone decide, read in every dialect. A failure with
	// a Retry-After keeps the breaker that it opens open until then, for at most
	// Server.MaxPause.
	Classify func(*http.Request, *http.Response, error) breaker.Outcome
	// Server is how far the pauses and limits that the server announces are obeyed.
	Server Server
	// Refusal is what a refused request gets: an error or a local response.
	// Zero is RefuseWithError.
	Refusal RefusalMode
	// Store is how the policy uses Config.Store. Without one it has no effect.
	Store StorePolicy
}

// A Server is how far a Policy obeys the pauses and limits that a server announces, in
// the status, the headers and the beginning of the body of its responses. The zero
// Server reads all dialects, obeys every pause, up to 24 h, and every announced
// limit.
type Server struct {
	// Dialects are the dialects in which responses are read. Nil means all that
	// package retryafter knows. With retryafter.None among them responses are not
	// read at all: none delays a request. With any others a 429 and a 529 are
	// refusals, even if a dialect of your own does not report them. Name several
	// for a host that uses several; name one where two dialects give one header
	// different meanings.
	Dialects []retryafter.Dialect
	// Learn is what the policy does with the limits that responses announce. Zero
	// is LearnLower. Limits that the request does not draw on are not used: those in a
	// 401, a 407, and a 403 that is not a throttle; in a response of another host, to
	// which the base transport has followed a redirect; in a response from a cache
	// (X-From-Cache, or an Age above 0 with a hit in Cache-Status, X-Cache and the
	// like; see section 5 of RFC 9111); and in trailers.
	Learn LearnMode
	// MaxPause is the longest pause that is obeyed, and the longest time for which an
	// announced limit holds after the last response that announces it. A longer one is
	// cut to it, and its event has Cut set. It also bounds how long a response holds a
	// Breaker open. It must not be negative; zero means 24 h.
	MaxPause time.Duration
}

// A StorePolicy is how a Policy uses Config.Store. The zero StorePolicy asks the
// store about every start, and keeps to 1/4 of each limit while the store is down.
type StorePolicy struct {
	// Down is what happens to requests while the store is down. Zero is
	// StoreDownLocal.
	Down StoreDown
	// Batch is the number of starts reserved per round trip to the store, so that
	// most requests need none. Those that the first request leaves are reserved for
	// requests with the same needs. A reserved start is used within a second or
	// returned. If the process dies, its reserved starts count as used, and are kept
	// for 5 s at least.
	//
	// The limits hold as they do without batches, but other processes cannot use what
	// this one has reserved, and a pause that another process reports takes effect up
	// to a second late. Starts are not reserved under Strict and Spaced limits, for
	// requests whose cost can be corrected, and during a pause. It must not be
	// negative; zero and 1 mean one start per round trip.
	Batch int
	// Share is the fraction of each limit that this process may use on its own under
	// StoreDownLocal, from more than 0 to 1. With one over the number of processes,
	// all of them together keep to the limit. The share of N is rounded down, but is
	// at least 1. Zero means 1/4.
	Share float64
}

// A Rule is a limit, the requests that it applies to, and the keys that divide it into
// budgets.
type Rule struct {
	// Name names the rule in errors, events, Quota and Settle. It is required, and must
	// be unique among the policy's rules and the texts of its Limits.
	Name string
	// Limit is how many units of cost each key may use.
	Limit limiter.Limit
	// Announced is the label under which the server announces this limit, such as
	// "requests" or "core": retryafter.LimitSignal.Name, compared without case. A limit
	// with this label belongs to this rule, and no other labelled limit does. Two rules
	// of a policy may have the same label only if their Methods, Path or Key differ.
	// Empty means that the limit is matched by its period; see LearnMode. Name is no label.
	Announced string
	// Methods are the request methods that the rule applies to, compared
	// exactly: "GET" does not cover HEAD. Empty means every method.
	Methods []string
	// Path is a pattern for the path that the rule applies to, in the form that
	// http.ServeMux takes, without method and host: "/search" is that path,
	// "/repos/" everything below it but not "/repos", "/repos/{owner}/{name}"
	// one segment each, "/files/{path...}" the rest, and "/{$}" the root alone.
	// The names of wildcards have no meaning. Segments compare unescaped, so that a
	// %2F does not split one. Unlike http.ServeMux it compares the path as it is sent,
	// without cleaning it or following redirects, and rules may overlap. Empty means
	// every path.
	Path string
	// FirstAttemptOnly makes the rule apply only to the first attempt of a call: a
	// call that is retried three times uses one unit of it. AttemptFrom returns which
	// attempt a request is. False means every attempt.
	FirstAttemptOnly bool
	// Key returns the key of a request. Requests with the same key share a budget, and
	// different keys have separate budgets. Nil means one budget for all requests to the
	// host. ByHeader and FromCallKey are the common keys. An error, or an empty key,
	// fails the request with a *KeyError before anything is sent or spent. Key is called
	// without locks, and concurrently; it must not change the request or read its body.
	Key func(*http.Request) (string, error)
	// Cost returns how many units a request takes. Nil means 1; FromCallCost takes the
	// cost from the Call. A request of cost 0 takes nothing, and waits only for pauses
	// and a slot. A negative cost is an error. Cost is called as Key is.
	Cost func(*http.Request) (int64, error)
	// Settle reads the true cost of a request from its response's headers. Excess units
	// are returned immediately, and missing units become a debt. False keeps the cost as
	// it is. Nil means that the cost was true. Settle is called as Key is; it must not
	// change the response or read its body.
	Settle func(*http.Response) (int64, bool)
}

// LearnMode is what a policy does with the limits that responses announce: so many
// units left until a reset. An announced limit belongs to the rule whose Announced is
// its label, compared without case, else, if it counts requests and is of no resource, to
// the rule of its period, with that rule's costs and keys. Otherwise it is a rule of its
// own, which costs each request of the identity that received the response 1 unit, or
// each that draws on the same resource. Where the request has
// keys, the rule must have all of them: what a server announces to one tenant does not
// apply to a budget that others share. Two rules have the same keys if they have the
// same Key function. At most 8 limits are kept for each identity, resource or budget.
type LearnMode uint8

const (
	// LearnLower counts an announced limit beside the rules, and requests wait for both.
	// Each response corrects the count by what it says is left: up or down, but for what
	// started after its own request, which the server had not counted. The response to a
	// request that started before the one that was used last corrects nothing. A limit
	// that belongs to a rule never allows more than the rule.
	//
	// What happens at a reset is known where the vendor documents it
	// (retryafter.ResetKind), or from two or three responses: all units return at once,
	// they return at a steady rate, or each returns one window after its start. Until it
	// is known, a limit with a window is taken for one of the last kind; the rule's
	// period counts as its window. One request goes alone when a limit without a window
	// resets, or when the units return that others have used of a limit, if these are more
	// than an eighth of it. The others follow its response, or start after four times the
	// mean response time, at most a quarter of the window, or 15 s. A reset in whole
	// seconds is taken to be 1 s later, since it may have been rounded down. Without a
	// reset or a window, one request asks a minute after the last response.
	//
	// After a refusal of a request that the count allowed, room is left for what others
	// use, and less again with each window without a refusal.
	//
	// A limit of which no window is known ends at its reset. One with a window ends when
	// no response has repeated it for three windows and a minute, at the latest; whatever
	// the server says, none holds for longer than Server.MaxPause after the last response.
	// A limit of none with none left is ignored. Each reported wait for an announced limit
	// is a lower bound (AtLeast).
	LearnLower LearnMode = iota
	// LearnPace is LearnLower, and spreads what is left evenly over the time to
	// the reset.
	LearnPace
	// LearnOff ignores announced limits and obeys pauses only.
	LearnOff
)

// RefusalMode is what a refused request gets. The zero RefusalMode is
// RefuseWithError.
type RefusalMode uint8

const (
	// RefuseWithError returns a *ThrottledError or an *OpenError.
	RefuseWithError RefusalMode = iota
	// RefuseWithResponse returns a local response with status 429, or 503 where a
	// breaker is open, for callers that retry on every error but understand these. It
	// carries Retry-After in whole seconds, rounded up, at least 1, and absent when
	// waiting does not help; a body of the form
	//
	//	{"error":{"type":"rate_limit_error","code":"rate_limit","message":…},"retry_after":seconds}
	//
	// with "unavailable_error" and "unavailable" for a breaker; and the header
	// Headway-Refused with the reason's String, or "open", which no server sends.
	// Only refusals become responses: the end of a context and a key that cannot be
	// determined remain errors.
	RefuseWithResponse
)

// StoreDown is what happens to requests while Config.Store is down: since it failed,
// or did not respond within 2 s. It also decides for the requests that need a row of
// the store that a newer version has written. The 2 s are spent once: from then on no
// request waits for the store. While requests arrive, one probe at a time finds out
// whether the store is back, at first after 100 ms, later every 5 s.
type StoreDown uint8

const (
	// StoreDownLocal keeps requests under the policy's limits in this process's
	// memory, each at StorePolicy.Share of its N. What it starts then is not reported
	// to the store later, and a request that is in line when the store returns stays
	// in this process's line. So from the moment when the store goes down until one
	// period after the last such start, a limit may be exceeded by what the processes
	// start this way: Share of it each, per period.
	StoreDownLocal StoreDown = iota
	// StoreDownRefuse refuses them, with limiter.ReasonStore.
	StoreDownRefuse
	// StoreDownAdmit sends them without any limit; breakers, MaxInFlight, and the
	// pauses and limits that responses announce meanwhile still apply.
	StoreDownAdmit
)

// Values with a meaning of their own: of MaxWait, and of ByHeader.
const (
	// NoWait refuses a request that cannot start immediately.
	NoWait time.Duration = math.MinInt64 + iota
	// OneWindow waits for at most the longest period of the limits that apply
	// to the request, and for 5 s at most; for 5 s where none applies.
	OneWindow
	// WaitForever waits as long as the request's context allows. It is for
	// Call.MaxWait, where zero means the policy's; Policy.MaxWait can be zero instead.
	WaitForever
	// OrHost is a fallback of ByHeader that no header can hold: requests without the
	// header share one budget per host, beside those of the keys. The hosts of a
	// Shared policy share it. A pause or a limit that a server announces in response
	// to such a request applies to such requests only.
	OrHost = "\x00host"
)

// waitBudget returns how long a request may wait in line, limiter.Never when
// its context alone bounds it. A call's MaxWait counts before the policy's;
// longest is the longest period of the limits that apply, zero without limits.
func waitBudget(policy, call, longest time.Duration) time.Duration {
	d := policy
	if call != 0 {
		d = call
	}
	switch {
	case d == 0 || d == WaitForever:
		return limiter.Never
	case d == OneWindow:
		const most = 5 * time.Second
		if longest <= 0 || longest > most {
			return most
		}
		return longest
	case d < 0:
		// NoWait, or what a caller computed from a time that has passed.
		return 0
	}
	return d
}

// name returns the policy's name or what stands for it; "" when there is
// neither a name nor a host.
func (p *Policy) name() string {
	if p.Name == "" && len(p.Hosts) > 0 {
		return p.Hosts[0]
	}
	return p.Name
}

// ByHeader returns a Rule.Key that gives each value of a request header its own
// budget; for the same arguments it returns the same function. The key of a request
// without the header is the first fallback, such as OrHost; where that is missing or
// empty, the request fails with a *KeyError.
//
// An http.Client drops the headers Authorization and Cookie, among others, when it
// follows a redirect to another host. A rule for several hosts whose key is one of
// these headers needs a fallback, or redirects between the hosts fail.
func ByHeader(name string, fallback ...string) func(*http.Request) (string, error) {
	h := headerKey{name: http.CanonicalHeaderKey(name)}
	if len(fallback) > 0 {
		h.fallback = fallback[0]
	}
	if f, ok := headerKeys.Load(h); ok {
		return f.(func(*http.Request) (string, error))
	}
	f, _ := headerKeys.LoadOrStore(h, h.function())
	return f.(func(*http.Request) (string, error))
}

// A headerKey is what ByHeader is called with.
type headerKey struct{ name, fallback string }

// headerKeys has the function of each headerKey.
var headerKeys sync.Map

func (h headerKey) function() func(*http.Request) (string, error) {
	missing := errors.New("the request has no header " + h.name + "; with ByHeader(name, OrHost) such requests share a budget of their host")
	redirected := errors.New(missing.Error() + " (this request follows a redirect: http.Client drops Authorization and Cookie headers on a redirect to another host)")
	return func(req *http.Request) (string, error) {
		if v := req.Header[h.name]; len(v) > 0 && v[0] != "" {
			return v[0], nil
		}
		switch {
		case h.fallback != "":
			return h.fallback, nil
		case req.Response != nil:
			return "", redirected
		}
		return "", missing
	}
}

var errNoCallKey = errors.New("the request's context has no Call with a Key; give it one by WithCall")

// FromCallKey is a Rule.Key that returns Call.Key from the request's context, which
// redirects keep. A request without one fails with a *KeyError.
func FromCallKey(req *http.Request) (string, error) {
	if key := CallFrom(req.Context()).Key; key != "" {
		return key, nil
	}
	return "", errNoCallKey
}

// FromCallCost is a Rule.Cost that returns Call.Cost from the request's context, or 1
// without one.
func FromCallCost(req *http.Request) (int64, error) {
	if cost := CallFrom(req.Context()).Cost; cost != 0 {
		return cost, nil
	}
	return 1, nil
}
