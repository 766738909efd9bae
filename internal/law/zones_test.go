package law

import (
	"archive/zip"
	"go/build"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// everyZone calls f with each zone of the data that package time/tzdata embeds,
// once where several names have the same data. A system's own data often spells
// out what Go's leaves to a rule.
func everyZone(t *testing.T, f func(t *testing.T, loc *time.Location)) {
	t.Helper()
	data, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	seen := map[string]bool{}
	for _, file := range data.File {
		if file.FileInfo().IsDir() {
			continue
		}
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(b)] {
			continue
		}
		seen[string(b)] = true
		loc, err := time.LoadLocationFromTZData(file.Name, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(file.Name, func(t *testing.T) {
			t.Parallel()
			f(t, loc)
		})
	}
	if len(seen) < 300 {
		t.Errorf("only %d zones", len(seen))
	}
}

// moments returns the instants of two centuries at which a zone's calendar is
// likeliest to be wrong, in order: its changes, and the last days of the years.
func moments(loc *time.Location) []time.Time {
	first, last := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	var list []time.Time
	for at := first.In(loc); at.Before(last); {
		_, change := at.ZoneBounds()
		switch {
		case change.IsZero():
			at = last
		case change.After(at):
			at = change
			list = append(list, change)
		default: // see nextChange
			at = at.Add(time.Hour)
		}
	}
	for y := 1900; y < 2100; y++ {
		if y%4 == 0 {
			list = append(list, time.Date(y, 12, 6, 0, 0, 0, 0, loc), time.Date(y, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(y, 12, 31, 12, 0, 0, 0, loc))
		}
		if y%4 == 0 || y%10 == 1 {
			list = append(list, time.Date(y+1, 1, 1, 0, 0, 0, 0, time.UTC))
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return list
}

// TestEveryZoneTilesTime: in all zones and over 200 years a period ends after
// each of its instants, where the clock shows the next, and all its instants find
// the same end. Two reports are replayed: golang/go 81583 (the bounds of a zone end
// before the instant, on the last day of a leap year) and 58682 (they begin long
// after it, where a rule without summer time continues the table).
func TestEveryZoneTilesTime(t *testing.T) {
	everyZone(t, func(t *testing.T, loc *time.Location) {
		for _, u := range []Unit{Minute, Hour, Day, Week, Month} {
			reach := map[Unit]time.Duration{Minute: time.Minute, Hour: time.Hour, Day: 49 * time.Hour, Week: 8 * 24 * time.Hour, Month: 32 * 24 * time.Hour}[u]
			var start, end time.Time // of the latest period
			for _, at := range moments(loc) {
				for _, w := range []time.Time{at.Add(-25 * time.Hour), at.Add(-1), at, at.Add(1), at.Add(reach / 3), at.Add(25 * time.Hour)} {
					if w.Before(start) {
						continue
					}
					for !w.Before(end) { // not more than a few, else w begins anew
						if start = end; w.Sub(start) > reach {
							start = w
						}
						end = u.End(start, loc)
						if !end.After(start) || end.Sub(start) > reach {
							t.Fatalf("%v: the period of %v ends at %v", u, start.In(loc), end.In(loc))
						}
						checkBorder(t, u, start.In(loc), end.In(loc))
					}
					if got := u.End(w, loc); !got.Equal(end) {
						t.Fatalf("%v: %v lies in the period from %v to %v but finds the end %v", u, w.In(loc), start.In(loc), end.In(loc), got.In(loc))
					}
				}
			}
		}
	})
}

// checkBorder fails where the clock does not show a new period at end, or shows
// one before.
func checkBorder(t *testing.T, u Unit, start, end time.Time) {
	t.Helper()
	switch d := map[Unit]time.Duration{Minute: time.Minute, Hour: time.Hour}[u]; {
	case d == 0:
		for _, w := range []time.Time{end.Add(-1), end.Add(-time.Hour), start.Add(end.Sub(start) / 2)} {
			if !later(u, end, w) && !w.Before(start) {
				t.Fatalf("%v: a period from %v ends at %v, but %v is no earlier", u, start, end, w)
			}
		}
	case shown(end).Truncate(d).Equal(shown(end)):
	default: // an odd change
		if from, _ := end.ZoneBounds(); !from.Equal(end) {
			t.Fatalf("%v: a period from %v ends at %v", u, start, end)
		}
	}
}

// TestLeapYearsDecember: what hung, by name: a year that a rule serves, which
// has 366 days.
func TestLeapYearsDecember(t *testing.T) {
	everyZone(t, func(t *testing.T, loc *time.Location) {
		if loc.String() != "America/New_York" {
			return
		}
		for _, y := range []int{2000, 2028, 2032, 2096} {
			for d := 1; d <= 31; d++ {
				st := New(Spec{N: 1, Kind: Calendar, Unit: Month, Location: loc}, time.Date(y, 12, d, 12, 0, 0, 0, loc))
				st.Take(0, 1)
				want := time.Date(y+1, 1, 1, 0, 0, 0, 0, loc).Sub(time.Date(y, 12, d, 12, 0, 0, 0, loc))
				if got, _ := st.Earliest(0, 0, 1); time.Duration(got) != want {
					t.Fatalf("on %d-12-%02d: the next in %v, want %v", y, d, time.Duration(got), want)
				}
			}
		}
	})
}
