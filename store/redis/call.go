package redis

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A call is the operations of one group: one run of the script.
type call struct {
	ops   []store.Op
	place []int // the index of each in the batch
	names []string
	keys  []string                   // of the rows with these names
	body  []byte                     // the encoded operations
	bad   map[string]*store.RowError // by name: damaged rows that could not be moved
	anew  []*store.RowError          // damaged rows that were moved
	tries int                        // how often rows were moved
}

// args returns the arguments of a run of the script.
func (c *call) args(clock string) []string {
	args := []string{clock, string(c.body)}
	var bad []byte
	for i, n := range c.names {
		if c.bad[n] != nil {
			bad = binary.BigEndian.AppendUint32(bad, uint32(i+1))
		}
	}
	if bad != nil {
		args = append(args, string(bad))
	}
	return args
}

// report adds the rows that have begun anew to the results.
func (c *call) report(results []store.Result) {
	for _, e := range c.anew {
		i := slices.IndexFunc(c.ops, func(op store.Op) bool {
			return slices.Contains(shown(&op), e.Name) || op.Audience == e.Name || op.Only == e.Name
		})
		results[max(0, i)].Anew = append(results[max(0, i)].Anew, e)
	}
}

// split returns the calls of a batch, in the order of their first operations.
func (s *Store) split(ops []store.Op) []*call {
	var calls []*call
	for i := range ops {
		j := slices.IndexFunc(calls, func(c *call) bool { return c.ops[0].Group == ops[i].Group })
		if j < 0 {
			j = len(calls)
			calls = append(calls, new(call))
		}
		calls[j].ops = append(calls[j].ops, ops[i])
		calls[j].place = append(calls[j].place, i)
	}
	for _, c := range calls {
		e := encoder{call: c, store: s}
		e.encode()
		for _, n := range c.names {
			c.keys = append(c.keys, s.key(c.ops[0].Group, n))
		}
	}
	return calls
}

// escape escapes a group, so that it cannot end its hash tag.
var escape = strings.NewReplacer("%", "%25", "}", "%7D")

// key returns the key of a row. All rows of a group are in one slot.
func (s *Store) key(group, name string) string {
	tag := escape.Replace(group)
	if tag == "" {
		tag = "%" // an empty tag would not be one
	}
	return s.cfg.Prefix + "{" + tag + "}" + name
}

// An encoder encodes operations. The script decodes them in the same order, at "kinds".
type encoder struct {
	*call
	store *Store
	terms []byte
	known []string // the limits in terms
	b     []byte
}

func (e *encoder) byte(n byte)          { e.b = append(e.b, n) }
func (e *encoder) int(n int64)          { e.b = binary.BigEndian.AppendUint64(e.b, uint64(n)) }
func (e *encoder) span(d time.Duration) { e.int(int64(d)) }
func (e *encoder) size(n int)           { e.b = binary.BigEndian.AppendUint32(e.b, uint32(n)) }
func (e *encoder) text(s string)        { e.size(len(s)); e.b = append(e.b, s...) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// row writes the index of a row, from 1 as Lua counts.
func (e *encoder) row(name string) {
	i := slices.Index(e.names, name)
	if i < 0 {
		i = len(e.names)
		e.names = append(e.names, name)
	}
	e.size(i + 1)
}

func specOf(l limiter.Limit) law.Spec {
	return law.Spec{N: l.N, Per: l.Per, Kind: law.Kind(l.Law), Burst: l.Burst, Strict: l.Strict, Unit: law.Unit(l.Unit), Location: l.Location}
}

// limit writes the index of a limit, from 1.
func (e *encoder) limit(l limiter.Limit) {
	spec := law.EncodeSpec(nil, specOf(l))
	i := slices.Index(e.known, string(spec))
	if i < 0 {
		i = len(e.known)
		e.known = append(e.known, string(spec))
		from, to := int64(0), int64(0)
		if l.Law == limiter.Calendar {
			from, to = e.store.period(l)
		}
		t := encoder{b: e.terms}
		t.text(string(spec))
		t.int(from)
		t.int(to)
		e.terms = t.b
	}
	e.size(i + 1)
}

func (e *encoder) need(n *store.Need) {
	e.limit(n.Limit)
	e.row(n.Budget)
	e.text(n.Budget)
	e.int(n.Cost)
}

func (e *encoder) needs(list []store.Need) {
	e.size(len(list))
	for i := range list {
		e.need(&list[i])
	}
}

func (e *encoder) rowsOf(needs []store.Need) {
	e.size(len(needs))
	for i := range needs {
		e.row(needs[i].Budget)
	}
}

func (e *encoder) audiences(list []string) {
	e.size(len(list))
	for _, audience := range list {
		e.row(audience)
	}
}

// always is an instant before all others.
const always = -int64(store.Never)

func (e *encoder) encode() {
	for i := range e.ops {
		e.op(&e.ops[i])
	}
	body := binary.BigEndian.AppendUint32(nil, uint32(len(e.known)))
	body = append(body, e.terms...)
	body = binary.BigEndian.AppendUint32(body, uint32(len(e.ops)))
	e.body = append(body, e.b...)
}

func (e *encoder) op(op *store.Op) {
	e.byte(byte(op.Kind))
	switch op.Kind {
	case store.OpTake:
		e.int(int64(op.ID))
		e.int(int64(op.Line))
		if op.Due > 0 {
			e.int(op.Due)
		} else {
			e.int(always)
		}
		e.int(op.Reserve)
		e.needs(op.Needs)
		e.audiences(op.Audiences)
	case store.OpReturn:
		e.int(int64(op.ID))
		e.int(op.Used)
		e.int(op.Due)
		e.int(op.Taken)
		e.needs(op.Needs)
		e.audiences(op.Audiences)
	case store.OpDone, store.OpRenew:
		e.int(int64(op.ID))
		e.rowsOf(op.Needs)
	case store.OpGive:
		e.int(int64(op.ID))
		e.int(op.Taken)
		e.size(len(op.Needs))
		for i := range op.Needs {
			n := &op.Needs[i]
			e.need(n)
			e.int(n.Taken)
			end := always
			if n.Limit.Law == limiter.Calendar {
				end = periodEnd(n.Limit, n.Taken)
			}
			e.int(end)
		}
		e.audiences(op.Audiences)
	case store.OpSpend:
		e.needs(op.Needs)
		e.audiences(op.Audiences)
	case store.OpRead:
		e.needs(op.Needs)
		e.audiences(shown(op))
	case store.OpForecast:
		e.audiences(shown(op))
	case store.OpPause:
		p := op.Pause
		e.row(op.Audience)
		e.text(op.Only)
		e.span(p.For)
		e.bool(p.Grow)
		e.span(p.Most)
		e.int(p.Started)
		e.size(len(p.Limits))
		for _, l := range p.Limits {
			e.int(l.N)
			e.span(specOf(l).Period())
		}
		e.int(p.Found)
		e.text(p.Source)
	case store.OpSuccess:
		e.int(op.Taken)
		e.audiences(op.Audiences)
	case store.OpLearn:
		l, where := op.Learn, op.Audience
		if op.Only != "" {
			where = op.Only
		}
		e.row(where)
		e.bool(op.Only != "")
		e.text(l.Name)
		e.span(l.Window)
		// The law bounds these in the same way, and the script's numbers are exact then.
		e.int(min(max(l.Left, -law.MaxN), law.MaxN))
		e.int(min(max(l.Limit, -1), law.MaxN))
		e.span(l.Reset)
		e.span(l.Period)
		e.byte(l.Resets)
		e.bool(l.Whole)
		e.bool(l.Early)
		e.bool(l.Refused)
		most := l.Most
		if most >= 3<<52 {
			most = 0 // it cannot matter, to a limit whose period is exact for the script
		}
		e.span(most)
		e.bool(l.Pace)
		e.int(l.Started)
		e.int(l.Own)
		e.int(l.InFlight)
		e.int(l.Mark.Used)
		e.int(l.Mark.InFlight)
		e.size(int(l.Mark.Generation))
		e.int(l.RuleLimit)
		e.span(l.RulePeriod)
		e.bool(l.RuleFills)
		e.text(l.Source)
	}
}

// shown returns the names of the rows that an operation reads.
func shown(op *store.Op) (names []string) {
	add := func(op *store.Op) {
		for i := range op.Needs {
			names = append(names, op.Needs[i].Budget)
		}
		names = append(names, op.Audiences...)
	}
	add(op)
	for i := range op.Asks {
		add(&op.Asks[i])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func periodEnd(l limiter.Limit, t store.Instant) store.Instant {
	loc := l.Location
	if loc == nil {
		loc = time.UTC
	}
	return law.Unit(l.Unit).End(time.Unix(0, t), loc).UnixNano()
}

// rows implements store.Rows over the rows that the script has returned, by name.
type rows struct {
	was, put map[string][]byte
	expires  map[string]time.Time
	bad      map[string]*store.RowError
}

func (r rows) Get(_, name string) ([]byte, error) {
	if e := r.bad[name]; e != nil {
		return nil, e
	}
	return r.was[name], nil
}

func (r rows) Put(_, name string, row []byte, expires time.Time) error {
	r.put[name], r.expires[name] = slices.Clone(row), expires
	return nil
}

func (c *call) rows() rows {
	return rows{was: map[string][]byte{}, put: map[string][]byte{}, expires: map[string]time.Time{}, bad: c.bad}
}

var errReply = errors.New("the script's reply is invalid; is the script of another version?")

// A reader decodes the script's reply.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if r.bad = r.bad || n > len(r.b); r.bad {
		return make([]byte, min(n, 8))
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte   { return r.bytes(1)[0] }
func (r *reader) int() int64   { return int64(binary.BigEndian.Uint64(r.bytes(8))) }
func (r *reader) size() int    { return int(binary.BigEndian.Uint32(r.bytes(4))) }
func (r *reader) text() []byte { return r.bytes(r.size()) }

// remaining decodes what is left under each of the needs, and by their limits alone where that
// follows.
func (r *reader) remaining(needs int, res *store.Result) {
	n := r.size()
	if r.bad = r.bad || n != needs && n != 2*needs; r.bad {
		return
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = r.int()
	}
	if res.Remaining = list[:needs:needs]; n > needs {
		res.LimitRemaining = list[needs:]
	}
}

// decode decodes the results of the operations, and which of them have failed.
func (c *call) decode(now store.Instant, b, failed []byte) ([]store.Result, error) {
	results := make([]store.Result, len(c.ops))
	r := &reader{b: failed}
	for len(r.b) > 0 {
		op, row := r.size()-1, r.size()-1
		if r.bad || op < 0 || op >= len(results) || row < 0 || row >= len(c.names) {
			return nil, errReply
		}
		e := c.bad[c.names[row]]
		if e == nil {
			e = &store.RowError{Group: c.ops[0].Group, Name: c.names[row], Err: ErrNewer}
		}
		results[op].Err = e
	}
	r = &reader{b: b}
	for i := range c.ops {
		op, res := &c.ops[i], &results[i]
		res.At = now
		if res.Err != nil {
			continue
		}
		switch op.Kind {
		case store.OpTake:
			c.take(r, len(op.Needs), res, now)
		case store.OpSpend:
			r.remaining(len(op.Needs), res)
		case store.OpPause:
			res.Paused, res.Announced = time.Duration(r.int()), c.announced(r, now)
		case store.OpLearn:
			res.Announced = c.announced(r, now)
		case store.OpRead, store.OpForecast:
			rows := c.rows()
			for _, n := range shown(op) {
				rows.was[n] = r.text()
			}
			if r.bad {
				return nil, errReply
			}
			one, err := store.Run(time.Unix(0, now), rows, c.ops[i:i+1])
			if err != nil {
				return nil, err
			}
			*res = one[0]
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, errReply
	}
	return results, nil
}

// The bits of the result of an OpTake.
const (
	bitOK = 1 << iota
	bitSkipped
	bitStrict
	bitUnderPause
	bitAtLeast
	bitPause
	bitLearned
)

func (c *call) take(r *reader, needs int, res *store.Result, now store.Instant) {
	bits := r.byte()
	is := func(bit byte) bool { return bits&bit != 0 }
	switch {
	case is(bitOK):
		res.OK, res.Strict, res.UnderPause, res.Bind = true, is(bitStrict), is(bitUnderPause), -1
		r.remaining(needs, res)
		res.Reserved = r.int()
		res.Marks = c.marks(r)
	case is(bitSkipped):
		res.Skipped, res.At = true, 0
	default:
		w := &res.Wait
		w.AtLeast, w.Pause, w.Learned = is(bitAtLeast), is(bitPause), is(bitLearned)
		w.At, w.Bind, w.Name = r.int(), int(r.int()), string(r.text())
		if w.For = store.Never; w.At != int64(store.Never) {
			w.For = time.Duration(max(0, w.At-now))
		}
		if r.remaining(needs, res); w.Pause || w.Learned {
			res.Announced = c.announced(r, now)
		}
	}
}

// marks decodes the marks of an OpTake.
func (c *call) marks(r *reader) (list []store.Mark) {
	for n := r.size(); n > 0 && !r.bad; n-- {
		row := r.size() - 1
		if r.bad = r.bad || row < 0 || row >= len(c.names); r.bad {
			return nil
		}
		list = append(list, store.Mark{
			Audience: c.names[row], Name: string(r.text()), Window: time.Duration(r.int()), Used: r.int(), Generation: uint32(r.size()),
		})
	}
	return list
}

// announced decodes a pause or a limit; nil if there is none or it has ended.
func (c *call) announced(r *reader, now store.Instant) []store.Announced {
	row := r.size()
	if row == 0 {
		return nil
	}
	if r.bad = r.bad || row > len(c.names); r.bad {
		return nil
	}
	h := store.Announced{Audience: c.names[row-1], Only: string(r.text()), Source: string(r.text())}
	if isLimit := r.byte() != 0; !isLimit {
		end := r.int()
		if end <= now {
			return nil
		}
		h.Pause = time.Duration(end - now)
		return []store.Announced{h}
	}
	h.Name, h.Window = string(r.text()), time.Duration(r.int())
	h.Left, h.Limit, h.Reset = r.int(), r.int(), -1
	if reset := r.int(); reset != int64(store.Never) {
		h.Reset = time.Duration(reset - now)
	}
	h.Age = time.Duration(now - r.int())
	return []store.Announced{h}
}
