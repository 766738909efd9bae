package law

import (
	"encoding/binary"
	"errors"
	"time"
)

// What is written down has a fixed width, so that a script in another language
// reads it too, and need not read all of it: numbers are eight bytes, the highest
// first, lengths four, kinds and truths one. Nothing here may change without
// another version.

// version is the first byte of everything that is written down. A reader that
// does not know it must not guess.
const version = 1

// ErrVersion says that a state was written down by another version of this
// package.
var ErrVersion = errors.New("law: the state was written by another version")

// ErrCorrupt says that what was read is not a state.
var ErrCorrupt = errors.New("law: the state is corrupt")

// Encode appends st, which is under the limit s, to b. Instants are written as
// they are, so that whoever reads them has to count from the same epoch.
func Encode(b []byte, s Spec, st State) []byte {
	e := encoder{append(b, version)}
	e.spec(s)
	switch st := st.(type) {
	case *window:
		e.ints(st.flying, st.sum)
		e.size(st.len)
		for i := range st.len {
			e.ints(st.at(i).At, st.at(i).Cost)
		}
	case *bucket:
		e.bucket(st)
	case *spaced:
		e.bucket(&st.bucket)
		e.ints(st.flying)
	case *sliding:
		e.bool(st.used)
		e.ints(st.start, st.cur, st.prev)
	case *calendar:
		e.ints(st.used, int64(st.end.Sub(st.wall)))
	}
	return e.b
}

// Decode reads what Encode has written, and returns the limit that it was under
// too. wall is what the wall clock shows at the instant 0.
func Decode(b []byte, wall time.Time) (Spec, State, error) {
	d := decoder{b: b}
	d.version()
	s := d.spec()
	if d.err != nil {
		return Spec{}, nil, d.err
	}
	if len(s.Validate()) > 0 {
		return Spec{}, nil, ErrCorrupt
	}
	st := New(s, wall)
	switch st := st.(type) {
	case *window:
		if flying := d.int(); st.strict && flying >= 0 {
			st.flying = flying
		} else if flying != 0 {
			d.fail()
		}
		sum := d.int()
		for n := d.size(); n > 0 && d.err == nil; n-- {
			at, cost := d.int(), d.int()
			if cost < 0 {
				d.fail()
				break
			}
			st.add(at, cost)
		}
		if sum != st.sum && max(sum, st.sum) < saturates {
			d.fail()
		}
	case *bucket:
		d.bucket(st)
	case *spaced:
		d.bucket(&st.bucket)
		st.flying = d.int()
	case *sliding:
		st.used = d.bool()
		st.start, st.cur, st.prev = d.int(), d.int(), d.int()
	case *calendar:
		st.used = d.int()
		st.end = st.wall.Add(time.Duration(d.int()))
	}
	return s, st, d.end()
}

// saturates is a sum from which on earlier versions may have written another than that
// of the costs.
const saturates = Unlimited / 2

// foundVersion is version for a Pace whose rate was found. Readers that would let all
// go after 10 s do not know it.
const foundVersion = 2

// EncodePace appends p to b, without what Served counts.
func EncodePace(b []byte, p *Pace) []byte {
	e := encoder{append(b, version)}
	if p.found {
		e.b[len(b)] = foundVersion
	}
	e.ints(p.n, p.per, p.end, p.starts, p.raised, p.step)
	return e.b
}

// DecodePace reads what EncodePace has written.
func DecodePace(b []byte) (*Pace, error) {
	d := decoder{b: b}
	found := len(b) > 0 && b[0] == foundVersion
	if found {
		d.b = b[1:]
	} else {
		d.version()
	}
	p := &Pace{rate: rate{n: d.int(), per: d.int()}, end: d.int(), starts: d.int(), raised: d.int(), step: d.int(), found: found, before: -Never}
	if p.n <= 0 || p.per <= 0 || p.found && p.per != second {
		d.fail()
	}
	return p, d.end()
}

// Until returns an instant from which on st is recovered if nothing is taken. It
// is not before now, and late rather than early.
func Until(st State, now Time) Time {
	switch st := st.(type) {
	case *window:
		if st.flying > 0 {
			return Never
		}
		if st.len > 0 {
			return max(now, addSat(st.last(), st.per))
		}
	case *bucket:
		return max(now, addSat(st.full, 2))
	case *spaced:
		if st.flying > 0 {
			return Never
		}
		return max(now, addSat(st.full, 2))
	case *sliding:
		if st.used {
			return max(now, addSat(st.start, addSat(st.per, st.per)))
		}
	case *calendar:
		if st.used > 0 {
			return max(now, st.instant(st.end))
		}
	case *Cap:
		return max(now, st.keep)
	case *Pace:
		if st.step > 0 {
			return max(now, addSat(st.end, memory))
		}
		return max(now, st.free())
	}
	return now
}

type encoder struct{ b []byte }

func (e *encoder) ints(list ...int64) {
	for _, n := range list {
		e.b = binary.BigEndian.AppendUint64(e.b, uint64(n))
	}
}

func (e *encoder) size(n int) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(n)) }

func (e *encoder) bool(v bool) {
	n := byte(0)
	if v {
		n = 1
	}
	e.b = append(e.b, n)
}

func (e *encoder) text(s string) {
	e.size(len(s))
	e.b = append(e.b, s...)
}

// EncodeSpec appends s to b, as Encode does it: two limits are the same if what
// it has appended is.
func EncodeSpec(b []byte, s Spec) []byte {
	e := encoder{b}
	e.spec(s)
	return e.b
}

func (e *encoder) spec(s Spec) {
	e.b = append(e.b, byte(s.Kind), byte(s.Unit))
	e.bool(s.Strict)
	e.ints(s.N, int64(s.Per), s.Burst)
	zone := ""
	if s.Location != nil && s.Location != time.UTC {
		zone = s.Location.String()
	}
	e.text(zone)
}

func (e *encoder) bucket(b *bucket) {
	var list []gap
	if b.gaps != nil {
		list = b.gaps.list[:b.gaps.len]
	}
	e.ints(b.full, b.frac, b.since)
	e.size(len(list))
	for _, g := range list {
		e.ints(g.at, g.ns)
	}
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = ErrCorrupt
	}
	d.b = nil
}

func (d *decoder) end() error {
	if len(d.b) > 0 {
		d.fail()
	}
	return d.err
}

func (d *decoder) version() {
	switch {
	case len(d.b) == 0:
		d.fail()
	case d.b[0] != version:
		d.err, d.b = ErrVersion, nil
	default:
		d.b = d.b[1:]
	}
}

func (d *decoder) int() int64 {
	if p := d.bytes(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (d *decoder) size() int {
	if p := d.bytes(4); p != nil {
		return int(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (d *decoder) byte() byte {
	if p := d.bytes(1); p != nil {
		return p[0]
	}
	return 0
}

// bytes returns the next n bytes, nil where there are no more so many.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) text() string { return string(d.bytes(d.size())) }

func (d *decoder) spec() Spec {
	s := Spec{Kind: Kind(d.byte()), Unit: Unit(d.byte()), Strict: d.bool(), N: d.int(), Per: time.Duration(d.int()), Burst: d.int()}
	if zone := d.text(); zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil { // the same limit is asked for by somebody who has the zone
			loc = time.UTC
		}
		s.Location = loc
	}
	return s
}

func (d *decoder) bucket(b *bucket) {
	b.full, b.frac, b.since = d.int(), d.int(), d.int()
	n := d.size()
	if n > len(gaps{}.list) || b.frac < 0 || b.frac > 0 && b.frac >= b.n {
		d.fail()
		return
	}
	if n == 0 {
		return
	}
	b.gaps = &gaps{len: n}
	for i := range n {
		b.gaps.list[i] = gap{at: d.int(), ns: d.int()}
	}
}

// EncodeCap appends c to b, without who is in flight.
func EncodeCap(b []byte, c *Cap) []byte {
	e := encoder{append(b, version)}
	e.text(c.Name)
	e.ints(c.left, c.limit, c.end, c.window, c.begun, c.keep, c.last, c.heard, c.told, c.low, c.lower, c.since, c.drift)
	for _, v := range []bool{c.blind, c.rolled, c.pace, c.started, c.said} {
		e.bool(v)
	}
	return e.b
}

// DecodeCap reads what EncodeCap has written; see NewCap for flying.
func DecodeCap(b []byte, flying *int64) (*Cap, error) {
	d := decoder{b: b}
	d.version()
	c := NewCap(d.text(), flying)
	for _, n := range []*int64{&c.left, &c.limit, &c.end, &c.window, &c.begun, &c.keep, &c.last, &c.heard, &c.told, &c.low, &c.lower, &c.since, &c.drift} {
		*n = d.int()
	}
	for _, v := range []*bool{&c.blind, &c.rolled, &c.pace, &c.started, &c.said} {
		*v = d.bool()
	}
	if c.window <= 0 {
		d.fail()
	}
	if c.limit == 0 {
		c.limit = -1
	}
	return c, d.end()
}

// HearOfSome is Hear for who knows of some in flight only: it lowers what is
// left, by those too, but never raises it before units come back.
func (c *Cap) HearOfSome(now Time, s Said, flying int64) {
	c.roll(now)
	// One more in flight, and one more left, are the same again; but with somebody
	// in flight Hear raises nothing.
	if s.Empty() {
		return
	}
	flying++
	c.flying, s.Left = &flying, addSat(s.Left, 1)
	c.Hear(now, s)
	var none int64
	c.flying = &none
}
