package law

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// codecWall is what the tests' wall clock shows at the instant 0.
var codecWall = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A state that is written down and read after every step decides as one that is
// not.
func TestWrittenDownStatesDecideAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCodecSpec(t)
		plain, written := New(s, codecWall), New(s, codecWall)
		now := Time(1_000_000_000)
		type taken struct {
			at     Time
			cost   int64
			flying bool
		}
		var all []taken
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3*int64(s.Period())/2).Draw(t, "later")
			var err error
			var back Spec
			if back, written, err = Decode(Encode(nil, s, written), codecWall); err != nil {
				t.Fatalf("%v: %v", s, err)
			}
			if back.String() != s.String() {
				t.Fatalf("got limit %v, want %v", back, s)
			}
			cost := rapid.Int64Range(1, 4).Draw(t, "cost")
			a, la := plain.Earliest(now, now, cost)
			b, lb := written.Earliest(now, now, cost)
			if a != b || la != lb || plain.Remaining(now) != written.Remaining(now) || plain.Recovered(now) != written.Recovered(now) {
				t.Fatalf("%v at %d: written down %d %v, left %d; want %d %v, left %d", s, now, b, lb, written.Remaining(now), a, la, plain.Remaining(now))
			}
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				fl := plain.Take(now, cost)
				written.Take(now, cost)
				all = append(all, taken{now, cost, fl})
			case 2:
				n := rapid.Int64Range(-3, 3).Draw(t, "n")
				plain.Spend(now, n)
				written.Spend(now, n)
			case 3, 4:
				if len(all) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				if e := &all[i]; e.flying {
					plain.Done(now, e.cost)
					written.Done(now, e.cost)
					e.flying, e.at = false, now
				} else {
					plain.Give(e.at, e.cost, false)
					written.Give(e.at, e.cost, false)
					all = append(all[:i], all[i+1:]...)
				}
			}
		}
		end := plain.Expires(now)
		if end != Never && !plain.Recovered(end) {
			t.Fatalf("%v: not recovered at %d, the end that Until gives", s, end)
		}
	})
}

func drawCodecSpec(t *rapid.T) Spec {
	s := Spec{N: rapid.Int64Range(1, 6).Draw(t, "N"), Kind: Kind(rapid.IntRange(0, 4).Draw(t, "law"))}
	if s.Kind == Calendar {
		s.Unit = Unit(rapid.IntRange(int(Minute), int(Month)).Draw(t, "unit"))
		return s
	}
	s.Per = time.Duration(rapid.Int64Range(1, 1_000_000).Draw(t, "per"))
	if s.Kind == Window || s.Kind == Spaced {
		s.Strict = rapid.Bool().Draw(t, "strict")
	}
	return s
}

func encodePace(p *Pace) []byte {
	c := NewWriter(nil)
	c.Pace(p)
	return c.Bytes()
}

func decodePace(b []byte) (*Pace, error) {
	p, c := NewPace(), NewReader(b)
	c.Pace(p)
	return p, c.End()
}

func encodeCap(l *Cap) []byte {
	c := NewWriter(nil)
	c.Cap(l)
	return c.Bytes()
}

func decodeCap(b []byte, flying *int64) (*Cap, error) {
	l, c := NewCap("", flying), NewReader(b)
	c.Cap(l)
	return l, c.End()
}

func TestWrittenDownPause(t *testing.T) {
	p := NewPace(Spec{N: 3, Per: time.Second})
	p.Grow(5, 1, 7, 100)
	p.Take(20, 1)
	p.before = -Never
	q, err := decodePace(encodePace(p))
	if err != nil || *q != *p {
		t.Errorf("got %+v, %v; want %+v", q, err, p)
	}
	p.SetLimits()
	p.Found(7, -Never, NewPace())
	p.served = 0
	b := encodePace(p)
	if q, err = decodePace(b); err != nil || *q != *p {
		t.Errorf("got %+v, %v; want %+v", q, err, p)
	}
	b[0]++
	if _, err := decodePace(b); err != ErrVersion {
		t.Errorf("a newer version: got %v, want %v", err, ErrVersion)
	}
}

// TestWrittenDownCap: an announced limit that is written down and read back decides as the
// one that was not, whatever it counts by.
func TestWrittenDownCap(t *testing.T) {
	for _, first := range []LimitSignal{
		{Left: 7, Limit: 10, Reset: 100 * sec, Started: 3, Pace: true},
		{Left: 7, Limit: 10, Reset: 100 * sec, Window: 50 * sec, Started: 3},
		{Left: 7, Limit: 10, Reset: 100 * sec, Resets: ResetsFull, Started: 3},
	} {
		c := NewCap("tokens", nil)
		c.Update(5, first)
		c.Take(20, 2)
		mark := c.Mark(20)
		c.Take(25, 1)
		c.Give(25, 1, false)
		next := first
		next.Left, next.Started, next.Mark, next.Refused = 3, 20, mark, true
		c.Update(30, next)
		d, err := decodeCap(encodeCap(c), nil)
		if err != nil || !bytes.Equal(encodeCap(d), encodeCap(c)) {
			t.Fatalf("got %+v, %v; want %+v", d, err, c)
		}
		for now := Time(40); now < 400*sec; now += 7 * sec {
			a, _ := c.Earliest(now, now, 1)
			b, _ := d.Earliest(now, now, 1)
			if a != b || c.Remaining(now) != d.Remaining(now) || c.Mark(now) != d.Mark(now) {
				t.Fatalf("at %d: a start at %d with %d left, want %d with %d", now, b, d.Remaining(now), a, c.Remaining(now))
			}
			c.Take(now, 1)
			d.Take(now, 1)
		}
	}
}

func TestBrokenStatesAreErrors(t *testing.T) {
	s := Spec{N: 3, Per: time.Second, Kind: Bucket}
	st := New(s, codecWall)
	st.Take(1, 2)
	whole := Encode(nil, s, st)
	for n := range whole {
		if _, _, err := Decode(whole[:n], codecWall); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: got %v, want %v", n, err, ErrCorrupt)
		}
	}
	if _, _, err := Decode(append(bytes.Clone(whole), 0), codecWall); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: got %v, want %v", err, ErrCorrupt)
	}
	newer := bytes.Clone(whole)
	newer[0]++
	if _, _, err := Decode(newer, codecWall); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: got %v, want %v", err, ErrVersion)
	}
}

func FuzzDecode(f *testing.F) {
	for k := Window; k <= Calendar; k++ {
		s := Spec{N: 3, Kind: k, Per: time.Second}
		if k == Calendar {
			s.Per, s.Unit = 0, Day
		}
		st := New(s, codecWall)
		st.Take(1, 2)
		f.Add(Encode(nil, s, st))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, st, err := Decode(b, codecWall)
		if err != nil {
			return
		}
		if _, _, err := Decode(Encode(nil, s, st), codecWall); err != nil {
			t.Errorf("%x reads as a state that cannot be written and read again: %v", b, err)
		}
	})
}
