package law

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// Zones with clock changes at midnight, of half an hour, over the date line, at
// one minute past midnight, and none.
var zones = []string{
	"UTC", "America/Los_Angeles", "America/Sao_Paulo", "America/Havana", "America/St_Johns", "America/Goose_Bay",
	"Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Asia/Beirut", "Africa/Cairo", "Asia/Tehran", "Asia/Gaza", "Asia/Kathmandu",
	"Europe/Berlin", "Atlantic/Azores", "America/Asuncion", "America/Santiago", "Antarctica/Troll",
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// later reports whether a's local period is after b's.
func later(u Unit, a, b time.Time) bool {
	key := func(t time.Time) int {
		y, m, d := t.Date()
		switch u {
		case Day:
			return (y*12+int(m))*31 + d
		case Week:
			return int((time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/86400 + 3 + 7e5) / 7) // 1970-01-01 was a Thursday
		case Month:
			return y*12 + int(m)
		}
		return 0
	}
	return key(a) > key(b)
}

// TestCalendarTilesTime walks from period to period over many years and zones:
// each begins at the first instant whose local day, week or month is later than
// all before it, and every instant within it finds the same end.
func TestCalendarTilesTime(t *testing.T) {
	from := 1985
	if raceEnabled { // the rest is without it
		from = 2018
	}
	for _, name := range zones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loc := zone(t, name)
			for _, u := range []Unit{Day, Week, Month} {
				w := time.Date(from, 1, 1, 0, 0, 0, 0, loc)
				w = u.End(w, loc)
				for w.Year() < 2030 {
					end := u.End(w, loc)
					if !end.After(w) {
						t.Fatalf("%v: the period of %v ends at %v", u, w, end)
					}
					if !later(u, end.In(loc), w.In(loc)) || later(u, end.Add(-1).In(loc), w.In(loc)) {
						t.Fatalf("%v: the period from %v ends at %v, which is not its first instant", u, w, end.In(loc))
					}
					steps := []time.Duration{0, 1, end.Sub(w) / 2, end.Sub(w) - 1}
					if l := end.Sub(w); u == Day && l != 24*time.Hour {
						for d := time.Duration(0); d < l; d += time.Minute / 2 {
							steps = append(steps, d)
						}
					}
					for _, d := range steps {
						x := w.Add(d).In(loc)
						if got := u.End(x, loc); !got.Equal(end) {
							t.Fatalf("%v: %v lies in the period from %v to %v but finds the end %v", u, x, w.In(loc), end.In(loc), got.In(loc))
						}
						if later(u, x, w.In(loc)) {
							t.Fatalf("%v: %v lies in the period from %v to %v", u, x, w.In(loc), end.In(loc))
						}
					}
					w = end
				}
			}
		})
	}
}

// TestCalendarHours: an hour and a minute end where the clock shows the next,
// also where an hour comes twice or half of one is left out.
func TestCalendarHours(t *testing.T) {
	for _, name := range zones {
		t.Run(name, rapid.MakeCheck(func(rt *rapid.T) {
			loc := zone(t, name)
			at := time.Unix(rapid.Int64Range(500_000_000, 1_900_000_000).Draw(rt, "at"), rapid.Int64Range(0, 999_999_999).Draw(rt, "ns")).In(loc)
			if start, end := at.ZoneBounds(); rapid.Bool().Draw(rt, "near a change") && !start.IsZero() && !end.IsZero() {
				at = end.Add(time.Duration(rapid.Int64Range(-2*int64(time.Hour), 2*int64(time.Hour)).Draw(rt, "off"))).In(loc)
			}
			for _, u := range []Unit{Minute, Hour} {
				d := u.End(at, loc).Sub(at)
				if limit := map[Unit]time.Duration{Minute: time.Minute, Hour: time.Hour}[u]; d <= 0 || d > limit {
					rt.Fatalf("%v ends %v after %v", u, d, at)
				}
				if got := u.End(at.Add(d-1), loc); !got.Equal(at.Add(d)) {
					if _, change := at.ZoneBounds(); change.IsZero() || change.After(at.Add(d)) {
						rt.Fatalf("%v of %v ends at %v, and that of its last instant at %v", u, at, at.Add(d), got)
					}
				}
			}
		}))
	}
}

// TestS29Midnight: 2,500 per day in Los Angeles, on both sides of both clock
// changes, and in zones where midnight is left out.
func TestS29Midnight(t *testing.T) {
	for _, c := range []struct{ zone, at, want string }{
		{"America/Los_Angeles", "2026-03-07T20:00:00Z", "2026-03-08T08:00:00Z"},
		{"America/Los_Angeles", "2026-03-08T20:00:00Z", "2026-03-09T07:00:00Z"}, // a day of 23 h
		{"America/Los_Angeles", "2026-10-31T20:00:00Z", "2026-11-01T07:00:00Z"},
		{"America/Los_Angeles", "2026-11-01T20:00:00Z", "2026-11-02T08:00:00Z"}, // a day of 25 h
		{"America/Sao_Paulo", "2018-11-03T20:00:00Z", "2018-11-04T03:00:00Z"},   // begins at 1:00
		{"Africa/Cairo", "2024-10-31T12:00:00Z", "2024-10-31T22:00:00Z"},        // 23:00 comes twice
		{"Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-30T10:00:00Z"},        // the 30th is left out
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		st := New(Spec{N: 2500, Kind: Calendar, Unit: Day, Location: zone(t, c.zone)}, at)
		st.Take(0, 2500)
		got, _ := st.Earliest(0, 0, 1)
		if s := at.Add(time.Duration(got)).Format(time.RFC3339); s != c.want {
			t.Errorf("%s: after all of the day's units at %s, the next at %s, want %s", c.zone, c.at, s, c.want)
		}
		if st.Remaining(got-1) != 0 || st.Remaining(got) != 2500 {
			t.Errorf("%s: they are not all back at %s", c.zone, c.want)
		}
	}
}

// TestCalendarKeepsItsPromise is TestLawsKeepTheirPromise with instants around
// the borders.
func TestCalendarKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Spec{N: rapid.Int64Range(1, 5).Draw(rt, "n"), Kind: Calendar, Unit: Minute, Location: zone(t, rapid.SampledFrom(zones).Draw(rt, "zone"))}
		st, o := New(s, wall0), &calendarOracle{s: s}
		var now Time
		for range 40 {
			now += rapid.SampledFrom([]int64{0, 0, 1, sec, 59 * sec, 60*sec - 1, 60 * sec, 200 * sec}).Draw(rt, "by")
			cost := rapid.Int64Range(1, s.N).Draw(rt, "cost")
			want := now
			if !o.fits(now, cost) {
				want = o.begin(now) + 60*sec
			}
			if got, _ := st.Earliest(now, now, cost); got != want {
				rt.Fatalf("at %d: could start at %d, want %d", now, got, want)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "op") {
			case 0:
				n := rapid.Int64Range(-3, 3).Draw(rt, "n")
				st.Spend(now, n)
				o.spend(now, n)
			default:
				now = want
				st.Take(now, cost)
				o.take(now, cost)
			}
			if got, want := st.Remaining(now), o.remaining(now); got != want {
				rt.Fatalf("%d left at %d, want %d", got, now, want)
			}
			if got, want := st.Recovered(now), o.empty(now); got != want {
				rt.Fatalf("recovered at %d: %v, want %v", now, got, want)
			}
		}
	})
}

// TestCalendarClockSet: where the wall clock is set back the running period
// goes on; where that has not begun by it, the one before ends with what was used.
// Where it is set forward the next begins at once.
func TestCalendarClockSet(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)
	st := New(Spec{N: 1, Kind: Calendar, Unit: Minute}, noon)
	st.Take(0, 1)
	SetWall(st, noon.Add(-10*time.Second), 0)
	if at, _ := st.Earliest(0, 0, 1); at != 40*sec {
		t.Errorf("set back by 10s: the next at %v, want 40s", time.Duration(at))
	}
	SetWall(st, noon.Add(-time.Hour-20*time.Second), 0)
	if at, _ := st.Earliest(0, 0, 1); at != 50*sec {
		t.Errorf("set back by an hour: the next at %v, want 50s", time.Duration(at))
	}
	SetWall(st, noon.Add(time.Minute), 0)
	if at, _ := st.Earliest(0, 0, 1); at != 0 {
		t.Errorf("set forward: the next at %v, want now", time.Duration(at))
	}
}

// TestCalendarClockDrifts: what clocks show is never quite the same at two
// looks; periods do not move by it at every look, and never begin early.
func TestCalendarClockDrifts(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)
	st := New(Spec{N: 1, Kind: Calendar, Unit: Minute}, noon)
	st.Take(0, 1)
	moved, last := 0, 30*sec
	for i := range 10_000 {
		wall := noon.Add(-time.Duration(i) * time.Microsecond).Add(time.Duration(i%7) * 100 * time.Microsecond)
		SetWall(st, wall, 0)
		at, _ := st.Earliest(0, 0, 1)
		if right := int64(noon.Add(30 * time.Second).Sub(wall)); at < right || at > right+10*ms {
			t.Fatalf("the period ends at %v, want %v or up to 10ms later", time.Duration(at), time.Duration(right))
		}
		if at != last {
			moved, last = moved+1, at
		}
	}
	if moved > 5 {
		t.Errorf("it moved %d times while the clock drifted by 10ms", moved)
	}
}
