package law

// care is how careful an announced limit is, beyond what its numbers say. Others may use the
// limit between a number and the next start: where a request is refused that the number would
// have allowed, more room is left from then on, and less again with each period without one.
type care struct {
	level int64 // of the last refusal: 0, or 1 to 2 in 256ths; see now
	calm  Time  // when that was

	deviation float64 // mean difference between a number and the next, in units
	slope     float64 // by how many units a nanosecond extra has grown of late
	peak      int64   // the largest extra of the last response time
	peakAt    Time

	shortestResponse int64 // of late; zero: there was none
	meanResponse     int64
}

const fullCare = 256

// took notes how long a response took.
func (a *care) took(d int64) {
	if a.shortestResponse == 0 {
		a.shortestResponse, a.meanResponse = d, d
		return
	}
	a.shortestResponse = min(d, addSat(a.shortestResponse, a.shortestResponse/16+1))
	a.meanResponse = addSat(a.meanResponse, subSat(d, a.meanResponse)/5)
}

// refused notes a refusal that the number would have allowed.
func (a *care) refused(now Time, per int64) {
	a.level = min(2*fullCare, max(fullCare, 2*a.current(now, per)))
	a.calm = now
}

// current returns the level, which halves with each period without a refusal.
func (a *care) current(now Time, per int64) int64 {
	if a.level == 0 {
		return 0
	}
	return a.level >> min(max(0, subSat(now, a.calm))/per, 62)
}

// note takes in that extra has become x, by the number of a request that started then; the
// last number was of one that started at newest.
func (a *care) note(now, started, newest Time, per, extra, x int64) {
	if newest > -Never && started > newest {
		apart := float64(subSat(started, newest))
		grown := float64(subSat(x, extra))
		weight := min(1, apart/(float64(per)/8))
		a.slope += float64(weight * (grown/apart - a.slope)) // never fused: a store's script computes the same
		a.deviation += (max(grown, -grown) - a.deviation) / 4
	}
	if x >= a.peak || subSat(now, a.peakAt) > a.meanResponse {
		a.peak, a.peakAt = x, now
	}
}

// margin returns for how many units room is left beside what a start costs.
func (c *Cap) margin(now Time) int64 {
	if c.level == 0 {
		return 0
	}
	per := c.period()
	level := c.current(now, per)
	if level <= fullCare/8 {
		return 0
	}
	most := float64(c.limit)
	if c.limit <= 0 {
		most = float64(max(c.left, 0))
	}
	grown := float64(max(0, c.slope) * float64(max(0, min(subSat(now, c.newest), per)))) // never fused, as in note
	m := min(c.deviation, most/32) + grown
	margin := int64(min(m, most/2) * float64(level) / fullCare)
	if subSat(now, c.peakAt) <= c.meanResponse {
		margin = addSat(margin, max(0, subSat(c.peak, max(0, c.over))))
	}
	return min(margin, int64(most/2)) // half of 2^63 is an int64, 2^63 is not
}

// graceFor returns for how long the requests wait that let another one go alone, where its
// response does not come.
func (a *care) graceFor(per int64) int64 {
	return min(max(4*min(a.meanResponse, longest), shortest), per/4)
}
