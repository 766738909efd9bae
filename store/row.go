package store

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/storerow"
	"github.com/headway-go/headway/limiter"
)

// A row is what is written down under one name: the state of a budget, and what has
// been announced of it or to an audience.
type row struct {
	spec      law.Spec
	state     law.State     // nil: none
	flights   []flight      // the units in flight of a strict state, which counts them too
	reserved  []reservation // the units for starts to come, which state does not count yet
	announced law.Announcements[string]
	dirty     bool
	bad       *RowError // it cannot be read, and stays as it is; the rest is empty
}

// A flight is the units of one request.
type flight struct {
	id    uint64
	until Instant // the end of its strict lease
	cost  int64
}

// A reservation is what one process has reserved.
type reservation struct {
	id     uint64
	at     Instant // when it was
	starts int64
	cost   int64 // of each
}

func (a *reservation) until() Instant { return a.at + int64(ReserveFor) }

// unitsReserved returns how many units are reserved.
func (r *row) unitsReserved() (sum int64) {
	for i := range r.reserved {
		sum += r.reserved[i].starts * r.reserved[i].cost
	}
	return sum
}

// earliest returns when cost units fit besides those that are reserved. Where that depends
// on a reservation, it is a lower bound.
func (r *row) earliest(now, t Instant, cost int64) (at Instant, atLeast bool) {
	reserved := r.unitsReserved()
	if reserved == 0 || cost > r.state.Max() || r.state.Max()-cost >= reserved {
		return r.state.Earliest(now, t, cost+reserved)
	}
	// They never fit together, and what is reserved may yet be used.
	at, _ = r.state.Earliest(now, t, cost)
	first := slices.MinFunc(r.reserved, func(a, b reservation) int { return cmp.Compare(a.at, b.at) })
	return max(at, first.until()), true
}

// use counts n reserved units as used at an instant.
func (r *row) use(at Instant, n int64) {
	if n > 0 && r.state.Take(at, n) {
		r.state.Done(at, n)
	}
}

// useLate counts all of a reservation that was never returned as used, at the latest
// that it can have been.
func (r *row) useLate(a *reservation) { r.use(a.at+int64(UseWithin), a.starts*a.cost) }

// wall is what the wall clock shows at the instant 0.
var wall = time.Unix(0, 0).UTC()

var (
	// ErrNewer is the error of a row that was written by a newer version of this
	// module.
	ErrNewer = errors.New("store: written by a newer version of this module; upgrade this program")
	// ErrDamaged is the error of a row that was not written by this module, or is not
	// complete.
	ErrDamaged = errors.New("store: a budget that was read is damaged")
)

func init() {
	storerow.Check = func(row []byte) error {
		_, err := decode(row)
		return err
	}
	storerow.Expires = func(row []byte) (time.Time, error) {
		r, err := decode(row)
		if err != nil {
			return time.Time{}, err
		}
		return time.Unix(0, r.expires(0)), nil
	}
}

func specOf(l limiter.Limit) law.Spec {
	return law.Spec{N: l.N, Per: l.Per, Kind: law.Kind(l.Law), Burst: l.Burst, Strict: l.Strict, Unit: law.Unit(l.Unit), Location: l.Location}
}

// encode appends the row to b.
func (r *row) encode(b []byte) []byte {
	c := law.NewWriter(b)
	r.code(c)
	return c.Bytes()
}

func decode(b []byte) (*row, error) {
	r := new(row)
	if len(b) == 0 {
		return r, nil
	}
	c := law.NewReader(b)
	r.code(c)
	switch err := c.End(); {
	case errors.Is(err, law.ErrVersion):
		return nil, ErrNewer
	case err != nil, !r.sound():
		return nil, ErrDamaged
	}
	return r, nil
}

// rowVersion is the first byte of a row.
const rowVersion = 1

// code writes the row down, or reads it. Every part of it that is of package law has a
// version of its own.
func (r *row) code(c *law.Codec) {
	v := byte(rowVersion)
	c.Version(&v, rowVersion)
	mark, any := c.Part()
	if any && (c.Reading() || r.state != nil) {
		c.State(&r.spec, &r.state, wall)
	}
	c.EndPart(mark)
	law.List(c, &r.flights, func(c *law.Codec, f *flight) {
		c.ID(&f.id)
		c.Ints(&f.until, &f.cost)
	})
	law.List(c, &r.reserved, func(c *law.Codec, a *reservation) {
		c.ID(&a.id)
		c.Ints(&a.at, &a.starts, &a.cost)
	})
	law.List(c, (*[]law.Announced[string])(&r.announced), codeAnnounced)
}

func codeAnnounced(c *law.Codec, a *law.Announced[string]) {
	c.Text(&a.Only)
	c.Text(&a.Source)
	c.Ints((*int64)(&a.Window))
	mark, _ := c.Part()
	isLimit := a.Limit != nil
	if c.Bool(&isLimit); isLimit {
		if c.Reading() {
			a.Limit = law.NewCap("", nil)
		}
		c.Cap(a.Limit)
	} else {
		if c.Reading() {
			a.Pause = law.NewPace()
		}
		c.Pace(a.Pause)
	}
	c.EndPart(mark)
}

// sound reports whether r could have been written by encode: units that are in flight
// or set aside are of a state, and are few enough to be counted.
func (r *row) sound() bool {
	if r.state == nil && len(r.flights)+len(r.reserved) > 0 {
		return false
	}
	for _, f := range r.flights {
		if f.cost < 0 {
			return false
		}
	}
	for _, a := range r.reserved {
		if a.starts < 0 || a.cost < 0 || a.cost > 0 && a.starts > math.MaxInt32/a.cost {
			return false
		}
	}
	return true
}

// clone returns a copy to plan with.
func (r *row) clone() *row {
	if r.bad != nil {
		return r
	}
	c, err := decode(r.encode(nil))
	if err != nil {
		panic(err) // it was just written
	}
	return c
}

// under puts the row under a limit; what it remembers still counts.
func (r *row) under(s law.Spec, now Instant) {
	if r.state != nil && r.spec.Equal(s) {
		return
	}
	if r.state != nil && !(r.spec.Strict && s.Strict && r.spec.Kind == s.Kind) {
		r.flights = nil // they count as answered now
	}
	r.spec, r.state = s, law.Convert(r.state, s, now, wall)
	if !s.Reservable() {
		r.use(now, r.unitsReserved())
		r.reserved = nil
	}
}

// clamp corrects what the row has of after now, where the clock was set back. It
// returns by how much the row was ahead of the clock. Calendars are corrected by
// tx.budget, which knows that the limit is the one in force.
func (r *row) clamp(now Instant) (ahead int64) {
	if r.state != nil && !law.IsCalendar(r.state) {
		ahead = r.state.Clamp(now)
	}
	for i := range r.flights {
		if f := &r.flights[i]; f.until-int64(StrictLease) > now {
			ahead = max(ahead, f.until-int64(StrictLease)-now)
			f.until = now + int64(StrictLease)
		}
	}
	for i := range r.reserved {
		if a := &r.reserved[i]; a.at > now {
			ahead = max(ahead, a.at-now)
			a.at = now
		}
	}
	for i := range r.announced {
		ahead = max(ahead, r.announced[i].State().Clamp(now))
	}
	r.dirty = r.dirty || ahead > 0
	return ahead
}

// prune ends the flights and reservations whose time is over, and forgets what makes no difference any more.
func (r *row) prune(now Instant) {
	r.flights = slices.DeleteFunc(r.flights, func(f flight) bool {
		if f.until > now {
			return false
		}
		r.state.Done(f.until, f.cost)
		r.dirty = true
		return true
	})
	r.reserved = slices.DeleteFunc(r.reserved, func(a reservation) bool {
		if a.until() > now {
			return false
		}
		r.useLate(&a)
		r.dirty = true
		return true
	})
	if r.state != nil && len(r.flights) == 0 && len(r.reserved) == 0 && r.state.Recovered(now) {
		r.state = nil // as if it had been forgotten, whether or not it has
	}
	r.announced = slices.DeleteFunc(r.announced, func(a law.Announced[string]) bool { return a.State().Recovered(now) })
}

// flight returns the index of a request's flight, or -1.
func (r *row) flight(id uint64) int {
	return slices.IndexFunc(r.flights, func(f flight) bool { return f.id == id })
}

// expires returns from when on the row cannot be told from one never written.
func (r *row) expires(now Instant) Instant {
	end := now
	for i := range r.announced {
		end = max(end, r.announced[i].State().Expires(now))
	}
	if r.state == nil {
		return end
	}
	st := r.state
	if len(r.flights) > 0 || len(r.reserved) > 0 {
		c := r.clone()
		st = c.state
		for _, f := range c.flights {
			st.Done(f.until, f.cost)
		}
		for _, a := range c.reserved {
			c.useLate(&a)
			end = max(end, a.until())
		}
	}
	return max(end, st.Expires(now))
}
