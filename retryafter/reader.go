package retryafter

import (
	"net/http"
	"strings"
	"time"
)

// A Reader reads responses in a chosen set of dialects. Create one for each host
// and keep it: it never changes, and is safe for concurrent use. The zero Reader
// reads nothing.
type Reader struct {
	set    bitset     // the rows that are read
	all    bool       // which are all
	listed []*builtin // the built-in dialects that were chosen
	custom []Dialect  // the others
	host   *builtin   // the dialect the host is known for
}

var everything = NewReader(nil, "")

// Read reads the status and the headers of a response that arrived at now, in every
// built-in dialect. The keys of h must be canonical, as in net/http. A [Reader]
// that knows the host may read the response better.
func Read(status int, h http.Header, now time.Time) (s Signal) {
	everything.read(&s, status, h, now)
	return s
}

// NewReader returns a Reader of the given dialects for the responses of host, which
// may have a port or be empty. Without dialects it reads all built-in ones; with
// [None] among them it reads nothing.
//
// If a header means different things in these dialects, its meaning is decided by
// what else the response shows; then by the host, if that is known for one of the
// dialects; then by their order. A number that is still ambiguous is read by its
// size.
//
// Every built-in dialect understands Retry-After. Custom dialects are tried in
// order and add to what was read; their RetryAfter counts if there was no other.
func NewReader(dialects []Dialect, host string) *Reader {
	r := &Reader{host: wellKnown(host)}
	if len(dialects) == 0 {
		r.all, r.set = true, ^bitset(0)
		return r
	}
	for _, d := range dialects {
		switch d := d.(type) {
		case nil:
		case none:
			return new(Reader)
		case *builtin:
			r.listed = append(r.listed, d)
			r.set |= d.set
		case bodied:
			r.listed = append(r.listed, d.builtin)
			r.set |= d.set
		default:
			r.custom = append(r.custom, d)
		}
	}
	if !r.reads(r.host) {
		r.host = nil
	}
	return r
}

// Read reads the status and the headers of a response that arrived at now. The zero
// Time means time.Now, which is then called only if the meaning of a header depends
// on it, or a custom dialect is among those of r.
func (r *Reader) Read(status int, h http.Header, now time.Time) (s Signal) {
	readTo(r, &s, status, h, now)
	return s
}

// join adds what another dialect read.
func (s *Signal) join(o *Signal, name string) {
	if s.Dialect == "" {
		s.Dialect = name
	}
	if !s.HasRetryAfter || s.Inferred && o.HasRetryAfter && (!o.Inferred || o.RetryAfter > s.RetryAfter) {
		s.RetryAfter, s.HasRetryAfter, s.Documented, s.Inferred = o.RetryAfter, o.HasRetryAfter, o.Documented, o.Inferred
		s.Scope = max(s.Scope, o.Scope)
		if o.HasRetryAfter || o.Resource != "" {
			s.Resource = o.Resource
		}
	}
	s.Hint = max(s.Hint, o.Hint)
	s.Throttled = s.Throttled || o.Throttled
	s.NoRetry = s.NoRetry || o.NoRetry
	s.ShouldRetry = s.ShouldRetry || o.ShouldRetry
	if o.Malformed != "" {
		s.malformed(o.Malformed)
	}
	for i := range o.Limits() {
		s.add(&o.limits[i])
	}
}

// reads reports whether a built-in dialect is among the chosen ones.
func (r *Reader) reads(b *builtin) bool {
	if r.all {
		return true
	}
	for _, l := range r.listed {
		if l == b {
			return true
		}
	}
	return false
}

// choose picks the dialect whose conventions hold for a response: the one it
// shows, else the one of its host, else the first chosen one.
func (c *Reader) choose(found *scan, status int) *builtin {
	if found.seen&signs != 0 {
		if row := c.shown(found.seen); row != nil {
			return row
		}
	}
	if found.showsLinear(status) && c.reads(&linearRow) {
		return &linearRow
	}
	if c.host != nil {
		return c.host
	}
	if first := c.first(found.seen); first != nil && !first.standard() {
		return first
	}
	return &unknown
}

// shown is the dialect that the signs seen show, or nil.
func (c *Reader) shown(seen bitset) *builtin {
	for _, row := range shown {
		if seen&row.lacks != 0 || !c.reads(row) {
			continue
		}
		for _, sign := range row.shows {
			if seen&sign == sign {
				return row
			}
		}
	}
	return nil
}

// first is the first chosen dialect that has headers among those seen, besides
// Retry-After; else the first chosen one.
func (c *Reader) first(seen bitset) *builtin {
	for _, l := range c.listed {
		if l.set&^retryAfterRow.own&seen != 0 {
			return l
		}
	}
	if len(c.listed) > 0 {
		return c.listed[0]
	}
	return nil
}

// standard is true for a row that is no vendor's. It has no conventions.
func (b *builtin) standard() bool {
	return int(b.order) < len(standards)
}

// wellKnown returns the dialect that a host is known for, or nil.
func wellKnown(host string) *builtin {
	host = strings.ToLower(host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host, ']') < i {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	if b := hosts[host]; b != nil {
		return b
	}
	for {
		i := strings.IndexByte(host, '.')
		if i < 0 {
			return nil
		}
		if b := hosts[host[i:]]; b != nil {
			return b
		}
		host = host[i+1:]
	}
}

// hosts are the well-known hosts of the table, with ".example.com" for those
// below example.com.
var hosts = func() map[string]*builtin {
	m := make(map[string]*builtin)
	for _, row := range table {
		for host := range strings.FieldsSeq(row.hosts) {
			m[host] = row
		}
	}
	return m
}()
