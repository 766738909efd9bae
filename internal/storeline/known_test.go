package storeline

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/store"
)

// What is left of announced limits agrees with what the store has reported of their budget since.
func TestKnownAgreesWithTheReport(t *testing.T) {
	const all = math.MaxInt64
	begin := time.Unix(1000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	// Known at a second, with so many units left of 100 and a reset so much later; negative: none.
	limit := func(s int, left int64, reset int) announced {
		return announced{store.Announced{Left: left, Limit: 100, Reset: time.Duration(reset) * time.Second, Window: time.Minute}, at(s)}
	}
	pause := announced{store.Announced{Pause: time.Minute}, at(0)}
	for _, tt := range []struct {
		name       string
		least, own int64 // reported at 10 s
		announced  []announced
		want       string // at 20 s
	}{
		{"others have used some", 30, 90, []announced{limit(5, 40, 60)}, "30"},
		{"units are back", 50, 90, []announced{limit(5, 40, 60)}, "50"},
		{"the budget's own limit decides", 30, 30, []announced{limit(5, 40, 60)}, "40"},
		{"of its own limit no more is left", 50, 50, []announced{limit(5, 40, 60)}, "50"},
		{"in debt", -7, 90, []announced{limit(5, 40, 60)}, "-7"},
		{"announced after the report", 30, 90, []announced{limit(15, 40, 60)}, "40"},
		{"announced with the report", 30, 90, []announced{limit(10, 20, 60)}, "20"},
		{"a reset since the report", 30, 90, []announced{limit(5, 20, 10)}, "100"},
		{"a reset before the report", 30, 90, []announced{limit(5, 20, 3)}, "30"},
		{"no reset is known", 30, 90, []announced{limit(5, 40, -1)}, "30"},
		{"the least of many", 30, 90, []announced{limit(5, 60, 60), limit(5, 40, 60), limit(5, 10, 60), limit(5, 50, 60)}, "60,40,30,50"},
		{"another is newer", 30, 90, []announced{limit(5, 60, 60), limit(15, 20, 60)}, "60,20"},
		{"another has its units back", 30, 90, []announced{limit(5, 60, 60), limit(5, 20, 10)}, "60,100"},
		{"a pause is no limit", 30, 90, []announced{pause, limit(5, 40, 60)}, "40s,30"},
		{"no limit", all, all, []announced{limit(5, 40, 60)}, fmt.Sprint(int64(all))},
	} {
		k := &known{Known: Known{Reported: true, Remaining: tt.least, LimitRemaining: tt.own}, reportedAt: at(10), announced: tt.announced}
		show := func() string {
			var got []string
			for _, a := range k.as(at(20)).Announcements {
				if a.Pause > 0 {
					got = append(got, a.Pause.String())
				} else {
					got = append(got, fmt.Sprint(a.Left))
				}
			}
			return strings.Join(got, ",")
		}
		for range 2 { // it is looked at time and again
			if got := show(); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
		if e := k.as(at(20)); e.Age != 10*time.Second || e.Remaining != tt.least || e.LimitRemaining != tt.own {
			t.Errorf("%s: got %+v", tt.name, e)
		}
		k.Reported = false
		tt.announced[len(tt.announced)-1].Reset = time.Hour
		if got, left := show(), tt.announced[len(tt.announced)-1].Left; !strings.HasSuffix(","+got, fmt.Sprint(",", left)) {
			t.Errorf("%s: got %s without a report, want the last to have %d", tt.name, got, left)
		}
	}
}
