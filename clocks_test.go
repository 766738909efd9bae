package headway_test

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/headway-go/headway/limiter"
)

// TestCalendarInDecemberOfALeapYear: golang/go 81583. Where a rule continues the
// data of a time zone, its year ends before the last day of a leap year does: 2000
// with Go's own data, 2040 with that of most systems. A request that waits for
// the new year starts in the first instant of it.
func TestCalendarInDecemberOfALeapYear(t *testing.T) {
	for _, unit := range []limiter.Unit{limiter.Day, limiter.Week, limiter.Month} {
		for _, year := range []int{2000, 2040} {
			t.Run(fmt.Sprint(unit, year), func(t *testing.T) {
				loc, err := time.LoadLocation("America/New_York")
				if err != nil {
					t.Fatal(err)
				}
				play(t, limits(limiter.Limit{N: 1, Law: limiter.Calendar, Unit: unit, Location: loc}), func(s *scene) {
					next := time.Date(year+1, 1, 1, 0, 0, 0, 0, loc) // in 2001 a Monday
					if unit == limiter.Week && year == 2040 {
						next = time.Date(2040, 12, 31, 0, 0, 0, 0, loc)
					}
					s.until(next.Add(-20 * time.Hour).Sub(s.base.epoch))
					s.sendAll(ask{}, "A", "B")
					s.wantStarts(fmt.Sprintf("A@%v B@%v", next.Add(-20*time.Hour).Sub(s.base.epoch), next.Sub(s.base.epoch)))
				})
			})
		}
	}
}
