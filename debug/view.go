package debug

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// A view is what the page shows, and JSON.
type view struct {
	At       time.Time `json:"at"`
	Total    total     `json:"total"`            // of all hosts, whether they are in Hosts or not
	Stores   []stored  `json:"stores,omitempty"` // stores that are down, or were
	Rows     []unread  `json:"rows,omitempty"`   // of stores that could not be read
	Offset   int       `json:"offset"`           // of Hosts
	Hosts    []host    `json:"hosts"`
	Refusals []refusal `json:"refusals"`

	Query    string `json:"-"`
	Observed bool   `json:"-"` // a Recent is there
}

// First and Last are which hosts it shows, counted from 1.
func (v view) First() int { return v.Offset + 1 }

// Last is the last that it shows.
func (v view) Last() int { return v.Offset + len(v.Hosts) }

// Parted says that there are other hosts than those it shows.
func (v view) Parted() bool { return len(v.Hosts) < v.Total.Hosts }

// Before is the offset of the page before it, -1 for none.
func (v view) Before() int {
	if v.Offset == 0 {
		return -1
	}
	return max(0, v.Offset-maxHosts)
}

// After is the offset of the next page, -1 for none.
func (v view) After() int {
	if v.Last() >= v.Total.Hosts {
		return -1
	}
	return v.Last()
}

// An unread is a row of a store that could not be read.
type unread struct {
	Policy string `json:"policy"`
	Host   string `json:"host"`
	Rule   string `json:"rule,omitempty"`
	Key    string `json:"key_digest,omitempty"`
	Anew   bool   `json:"anew"` // it has begun anew; else the store does not decide for it
	Err    string `json:"error,omitempty"`
	Count  int    `json:"count"`
	Last   span   `json:"last_seconds_ago"`
}

// A total is over all hosts of a view.
type total struct {
	Hosts    int `json:"hosts"`
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
	Paused   int `json:"paused"`
	Open     int `json:"open"` // hosts whose breaker is not closed, but those of a Shared policy are one
}

// A stored is an outage of a store.
type stored struct {
	Away   bool   `json:"away"`
	Began  span   `json:"began_seconds_ago"`
	Ended  span   `json:"ended_seconds_ago"` // negative: it has not
	Err    string `json:"error,omitempty"`
	Missed int    `json:"missed"` // decisions without it, in all
}

func newStored(o outage, now time.Time) stored {
	s := stored{Away: o.down > 0, Began: span(now.Sub(o.began)), Ended: -1, Missed: o.missed}
	if !s.Away {
		s.Ended = span(now.Sub(o.ended))
	}
	if o.err != nil {
		s.Err = o.err.Error()
	}
	return s
}

type host struct {
	Policy   string   `json:"policy"`
	Host     string   `json:"host"`
	Overflow bool     `json:"overflow,omitempty"`
	Waiting  int      `json:"waiting"`
	InFlight int      `json:"in_flight"`
	Slots    int      `json:"max_in_flight,omitempty"`
	Breakers []gate   `json:"breakers,omitempty"`
	Budgets  []budget `json:"budgets,omitempty"`
	Pauses   []pause  `json:"pauses,omitempty"`

	Gate string  `json:"-"` // what the worst of its breakers is; empty without any
	Line picture `json:"-"`

	// How many are left out.
	MoreBreakers int `json:"more_breakers,omitempty"`
	MoreBudgets  int `json:"more_budgets,omitempty"`
	MorePauses   int `json:"more_pauses,omitempty"`
}

// Title is the host, or what it stands for.
func (h host) Title() string {
	switch {
	case h.Overflow:
		return "other hosts of " + h.Policy
	case h.Host == "":
		return "all hosts of " + h.Policy
	default:
		return h.Host
	}
}

// Full says that all slots are taken.
func (h host) Full() bool { return h.Slots > 0 && h.InFlight >= h.Slots }

// Held reports that something holds up some of its requests.
func (h host) Held() bool { return len(h.Pauses) > 0 || h.Down() }

// Down says that a breaker is not closed.
func (h host) Down() bool { return h.Gate != "" && h.Gate != breaker.Closed.String() }

// Busy reports that there is activity now, or was in the last minutes.
func (h host) Busy() bool { return h.Held() || h.Line.Most > 0 }

// A gate is the breaker of one host.
type gate struct {
	Host       string `json:"host"`
	State      string `json:"state"`
	RetryAfter span   `json:"retry_after_seconds"`
	Err        string `json:"error,omitempty"`
}

// A pause says until when which requests are held, and why.
type pause struct {
	Rule     string `json:"rule,omitempty"`
	Key      string `json:"key_digest,omitempty"`
	Resource string `json:"resource,omitempty"`
	Left     span   `json:"left_seconds"`
	Source   string `json:"source,omitempty"`
	// Following fields are known where a Recent has seen the response.
	Status int    `json:"status,omitempty"`
	From   string `json:"from,omitempty"`
	Ago    span   `json:"ago_seconds,omitempty"`
	Cut    bool   `json:"cut,omitempty"`
}

// A refusal stands for requests that were refused for one reason.
type refusal struct {
	Policy     string `json:"policy"`
	Host       string `json:"host"`
	Rule       string `json:"rule,omitempty"`
	Key        string `json:"key_digest,omitempty"`
	Reason     string `json:"reason"`
	RetryAfter span   `json:"retry_after_seconds"`
	AtLeast    bool   `json:"at_least,omitempty"`
	Away       bool   `json:"away,omitempty"` // decided without the store
	Count      int    `json:"count"`
	First      span   `json:"first_seconds_ago"`
	Last       span   `json:"last_seconds_ago"`
}

// Never says that waiting longer would not have helped.
func (r refusal) Never() bool { return time.Duration(r.RetryAfter) == limiter.Never }

// newView returns the policies and hosts whose name contains in.q, as far as they are in
// the window. For the page it leaves out rows beyond a useful number.
func newView(s *sight, in window) view {
	v := view{At: s.at.UTC(), Offset: in.offset, Hosts: []host{}, Refusals: []refusal{}, Query: in.q, Observed: s.observed}
	q := strings.ToLower(in.q)
	wanted := func(policy, host string) bool {
		return q == "" || strings.Contains(strings.ToLower(policy), q) || strings.Contains(host, q)
	}
	for _, o := range s.outages {
		if !o.began.IsZero() {
			v.Stores = append(v.Stores, newStored(o, s.at))
		}
	}
	var all []headway.HostStatus
	for _, h := range s.hosts {
		if !wanted(h.Policy, h.Host) {
			continue
		}
		if v.Total.Hosts >= in.offset && len(all) < in.limit {
			all = append(all, h)
		}
		v.Total.Hosts++
		v.Total.Waiting += h.Waiting
		v.Total.InFlight += h.InFlight
		if len(h.Pauses) > 0 {
			v.Total.Paused++
		}
		if worst(h) > breaker.Closed {
			v.Total.Open++
		}
	}
	v.Offset = min(v.Offset, v.Total.Hosts)
	if in.page { // places on it change as little as can be
		slices.SortFunc(all, func(a, b headway.HostStatus) int {
			return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Host, b.Host))
		})
	}
	for _, h := range all {
		v.Hosts = append(v.Hosts, newHost(h, s, in))
	}
	if in.page { // hosts with activity come first, each part in order of names
		slices.SortStableFunc(v.Hosts, func(a, b host) int {
			switch {
			case a.Busy() == b.Busy():
				return 0
			case a.Busy():
				return -1
			default:
				return 1
			}
		})
	}
	for _, r := range s.rows {
		if e := r.Event; wanted(e.Policy, e.Host) {
			row := unread{
				Policy: e.Policy, Host: e.Host, Rule: e.Rule, Key: e.KeyDigest, Anew: !e.Away, Count: r.Count, Last: span(s.at.Sub(r.Last)),
			}
			if e.Err != nil {
				row.Err = e.Err.Error()
			}
			v.Rows = append(v.Rows, row)
		}
	}
	for _, r := range s.refusals {
		if e := r.Event; wanted(e.Policy, e.Host) {
			v.Refusals = append(v.Refusals, refusal{
				Policy: e.Policy, Host: e.Host, Rule: e.Rule, Key: e.KeyDigest, Reason: reason(e),
				RetryAfter: span(e.RetryAfter), AtLeast: e.AtLeast, Away: e.Away, Count: r.Count,
				First: span(s.at.Sub(r.First)), Last: span(s.at.Sub(r.Last)),
			})
		}
	}
	return v
}

func newHost(s headway.HostStatus, all *sight, in window) host {
	h := host{Policy: s.Policy, Host: s.Host, Overflow: s.Overflow, Waiting: s.Waiting, InFlight: s.InFlight, Slots: s.MaxInFlight}
	gates, rows, pauses := s.Breakers, rowsOf(s), s.Pauses
	if len(gates) > 0 {
		h.Gate = worst(s).String()
	}
	if in.page {
		gates = slices.DeleteFunc(slices.Clone(gates), func(b headway.BreakerStatus) bool { return b.State == breaker.Closed })
		h.Line = all.history.draw(place{s.Policy, s.Host}, all.at)
	}
	gates, h.MoreBreakers = mostOf(gates, in.rows, func(a, b headway.BreakerStatus) int { return cmp.Compare(b.RetryAfter, a.RetryAfter) })
	rows, h.MoreBudgets = mostOf(rows, in.rows, func(a, b row) int { return cmp.Compare(a.left(), b.left()) })
	pauses, h.MorePauses = mostOf(pauses, in.rows, func(a, b headway.PauseStatus) int { return cmp.Compare(b.Left, a.Left) })
	for _, b := range gates {
		row := gate{Host: b.Host, State: b.State.String(), RetryAfter: span(b.RetryAfter)}
		if b.Err != nil {
			row.Err = b.Err.Error()
		}
		h.Breakers = append(h.Breakers, row)
	}
	for _, r := range rows {
		h.Budgets = append(h.Budgets, r.budget())
	}
	for _, p := range pauses {
		h.Pauses = append(h.Pauses, newPause(s, p, all))
	}
	return h
}

// worst returns the most restrictive state of a host's breakers.
func worst(h headway.HostStatus) breaker.State {
	state := breaker.Closed
	for _, b := range h.Breakers {
		if b.State == breaker.Open || state == breaker.Closed {
			state = b.State
		}
	}
	return state
}

// reason says why a request was refused.
func reason(e headway.Event) string {
	if e.Kind == headway.EventOpenRefused {
		return "breaker"
	}
	return e.Reason.String()
}

// newPause adds to a pause the response that raised it, if it is known.
func newPause(s headway.HostStatus, p headway.PauseStatus, all *sight) pause {
	row := pause{Rule: p.Rule, Key: p.KeyDigest, Resource: p.Resource, Left: span(p.Left), Source: p.Source}
	for _, h := range all.pauses {
		// A status without a host is of a policy whose hosts share all, or of those
		// that share an overflow entry.
		e := h.Event
		if e.Policy == s.Policy && (e.Host == s.Host || s.Host == "") && e.Rule == p.Rule && e.KeyDigest == p.KeyDigest && e.Resource == p.Resource {
			row.Status, row.From, row.Ago, row.Cut = e.Status, e.Host, span(all.at.Sub(h.Last)), e.Cut
			break
		}
	}
	return row
}

// mostOf returns the n of list that come first by less, in the order of list, and
// how many are left out.
func mostOf[T any](list []T, n int, less func(a, b T) int) ([]T, int) {
	if len(list) <= n {
		return list, 0
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return less(list[a], list[b]) })
	order = order[:n]
	slices.Sort(order)
	first := make([]T, n)
	for i, j := range order {
		first[i] = list[j]
	}
	return first, len(list) - n
}
