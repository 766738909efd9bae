package law

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// What is written down has a fixed width, so that a script in another language
// reads it too, and need not read all of it: numbers are eight bytes, the highest
// first, lengths four, kinds and truths one. Nothing here may change without
// another version.

// version is the first byte of everything that is written down. A reader that
// does not know it must not guess.
const version = 1

// lastVersion is the last byte that a later version may begin with. What begins with
// another one was never written by any version.
const lastVersion = 31

// ErrVersion is the error of a state that was written down by a later version of this
// package.
var ErrVersion = errors.New("law: the state was written by a newer version")

// ErrCorrupt is the error of what is not a state.
var ErrCorrupt = errors.New("law: the state is corrupt")

// A Codec writes values down, or reads them back: the same calls in the same order
// do both, so that neither can forget what the other does. Writing, a method writes
// what its pointers point to; reading, it sets that. What cannot be read is zero, and
// so is all that comes after it; End returns the reason.
type Codec struct {
	b       []byte // what is written so far, or what is still to be read
	reading bool
	err     error
	rest    []byte // reading a part: what comes after it
}

// NewWriter returns a Codec that appends to b.
func NewWriter(b []byte) *Codec { return &Codec{b: b} }

// NewReader returns a Codec that reads b.
func NewReader(b []byte) *Codec { return &Codec{b: b, reading: true} }

// Reading reports whether c reads.
func (c *Codec) Reading() bool { return c.reading }

// Bytes returns what is written.
func (c *Codec) Bytes() []byte { return c.b }

// End returns the first error of a reader, which has read all that it should.
func (c *Codec) End() error {
	if c.reading && len(c.b) > 0 {
		c.fail()
	}
	return c.err
}

func (c *Codec) fail() { c.failWith(ErrCorrupt) }

func (c *Codec) failWith(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b, c.rest = nil, nil
}

var zeros [8]byte

// next returns the place of the next n bytes, at most eight: to write to, or to be
// read.
func (c *Codec) next(n int) []byte {
	if !c.reading {
		c.b = append(c.b, zeros[:n]...)
		return c.b[len(c.b)-n:]
	}
	if n > len(c.b) {
		c.fail()
		return zeros[:n]
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

// Ints are numbers.
func (c *Codec) Ints(list ...*int64) {
	for _, n := range list {
		if p := c.next(8); c.reading {
			*n = int64(binary.BigEndian.Uint64(p))
		} else {
			binary.BigEndian.PutUint64(p, uint64(*n))
		}
	}
}

// Float is a number that need not be whole.
func (c *Codec) Float(f *float64) {
	n := int64(math.Float64bits(*f))
	c.Ints(&n)
	*f = math.Float64frombits(uint64(n))
}

// ID is a number without a sign.
func (c *Codec) ID(id *uint64) {
	n := int64(*id)
	c.Ints(&n)
	*id = uint64(n)
}

// Size is a length.
func (c *Codec) Size(n *int) {
	if p := c.next(4); c.reading {
		*n = int(binary.BigEndian.Uint32(p))
	} else {
		binary.BigEndian.PutUint32(p, uint32(*n))
	}
}

// Byte is one byte.
func (c *Codec) Byte(n *byte) {
	if p := c.next(1); c.reading {
		*n = p[0]
	} else {
		p[0] = *n
	}
}

// Bool is a truth.
func (c *Codec) Bool(v *bool) {
	n := byte(0)
	if *v {
		n = 1
	}
	c.Byte(&n)
	*v = n != 0
}

// Text is a string, with its length.
func (c *Codec) Text(s *string) {
	n := len(*s)
	switch c.Size(&n); {
	case !c.reading:
		c.b = append(c.b, *s...)
	case n > len(c.b):
		c.fail()
	default:
		*s = string(c.b[:n])
		c.b = c.b[n:]
	}
}

// List is the elements of a list, after how many they are.
func List[T any](c *Codec, list *[]T, each func(*Codec, *T)) {
	n := len(*list)
	c.Size(&n)
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			*list = append(*list, *new(T))
		}
		each(c, &(*list)[i])
	}
}

// Part begins a part that stands after its length, so that a reader can pass over it.
// The caller ends it by EndPart with what Part has returned. Parts do not nest. Reading,
// it reports whether the part has anything in it.
func (c *Codec) Part() (mark int, any bool) {
	n := 0
	c.Size(&n)
	if !c.reading {
		return len(c.b), true
	}
	if n > len(c.b) {
		c.fail()
		return 0, false
	}
	c.b, c.rest = c.b[:n], c.b[n:]
	return 0, n > 0
}

// EndPart ends the part that was begun at mark.
func (c *Codec) EndPart(mark int) {
	if !c.reading {
		binary.BigEndian.PutUint32(c.b[mark-4:], uint32(len(c.b)-mark))
		return
	}
	c.End()
	c.b, c.rest = c.rest, nil
}

// Version is the first byte of what is written down. A reader knows those up to last.
func (c *Codec) Version(v *byte, last byte) {
	switch c.Byte(v); {
	case !c.reading || c.err != nil || version <= *v && *v <= last:
	case last < *v && *v <= lastVersion:
		c.failWith(ErrVersion)
	default:
		c.fail()
	}
}

// Encode appends st, which is under the limit s, to b. Instants are written as
// they are, so that a reader has to count from the same epoch.
func Encode(b []byte, s Spec, st State) []byte {
	c := NewWriter(b)
	c.State(&s, &st, time.Time{})
	return c.b
}

// Decode reads what Encode has written, and returns the limit that it was under
// too. wall is what the wall clock shows at the instant 0.
func Decode(b []byte, wall time.Time) (s Spec, st State, err error) {
	c := NewReader(b)
	c.State(&s, &st, wall)
	return s, st, c.End()
}

// State is a state, after the limit that it is under; see Encode and Decode.
func (c *Codec) State(s *Spec, st *State, wall time.Time) {
	v := byte(version)
	c.Version(&v, version)
	if s.code(c); c.reading {
		if c.err == nil && len(s.Validate()) > 0 {
			c.fail()
		}
		if c.err != nil {
			return
		}
		*st = New(*s, wall)
	}
	(*st).code(c)
}

// EncodeSpec appends s to b, as Encode does it: two limits are the same if what
// it has appended is.
func EncodeSpec(b []byte, s Spec) []byte {
	c := NewWriter(b)
	s.code(c)
	return c.b
}

func (s *Spec) code(c *Codec) {
	c.Byte((*byte)(&s.Kind))
	c.Byte((*byte)(&s.Unit))
	c.Bool(&s.Strict)
	c.Ints(&s.N, (*int64)(&s.Per), &s.Burst)
	zone := s.zone()
	c.Text(&zone)
	if !c.reading || zone == "" {
		return
	}
	var err error
	if s.Location, err = time.LoadLocation(zone); err != nil {
		s.Location = time.UTC // a process that has the zone asks for the same limit
	}
}

// Pace is a pause, without what Served counts.
func (c *Codec) Pace(p *Pace) { p.code(c) }

// Cap is a limit that a server has announced, without what is in flight.
func (c *Codec) Cap(l *Cap) { l.code(c) }
