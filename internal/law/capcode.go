package law

import "math"

// capVersion is the first byte of an announced limit that is written down.
const capVersion = 2

// code writes down all but what is in flight.
func (c *Cap) code(d *Codec) {
	v := byte(capVersion)
	d.Version(&v, capVersion)
	if d.reading && d.err == nil && v != capVersion {
		d.fail()
	}
	d.Text(&c.Name)
	kind, gen, resets, confirmed := byte(c.kind), int64(c.gen), byte(c.resets), byte(c.confirmed)
	d.Byte(&kind)
	d.Byte(&resets)
	d.Byte(&confirmed)
	d.Bool(&c.rolled)
	d.Bool(&c.named)
	d.Bool(&c.early)
	d.Bool(&c.open)
	d.Bool(&c.ceiling)
	d.Ints(&gen, &c.since, &c.at, &c.limit, &c.per, &c.keep, &c.left, &c.begun, &c.end, &c.spread)
	d.Ints(&c.extra, &c.over, &c.unsure, &c.till, &c.given, &c.lump, &c.heard, &c.alone, &c.until, &c.grace, &c.every, &c.start, &c.last)
	d.Ints(&c.newest, &c.compared, &c.updated, &c.low, &c.drift)
	d.Ints(&c.seenLeft, &c.seenReset, &c.seenAt, &c.unit)
	d.Ints(&c.level, &c.calm, &c.peak, &c.peakAt, &c.shortestResponse, &c.meanResponse)
	d.Float(&c.deviation)
	d.Float(&c.slope)
	if d.reading {
		c.kind, c.gen, c.resets, c.confirmed = capKind(kind), uint32(gen), Resets(resets), int(confirmed)
		if !c.sound() {
			d.fail()
			return
		}
	}
	switch c.kind {
	case capRolling:
		if d.reading {
			c.window = newRolling(c.limit, c.per)
			c.window.per = c.per + guard(c.shortestResponse, c.per)
		}
		c.window.code(d)
	case capFilling:
		if d.reading {
			c.bucket = newFilling(c.limit, c.per, 0, 0)
		}
		c.bucket.code(d)
	}
}

// sound reports whether what was read can be counted with.
func (c *Cap) sound() bool {
	counted := c.limit > 0 && c.limit <= MaxN && c.per > 0 && c.per <= longest
	return c.kind <= capFilling && c.resets <= ResetsRolling && (c.kind == capCounter || counted) &&
		c.limit != 0 && c.per >= 0 && c.per <= longest && c.shortestResponse >= 0 && c.meanResponse >= 0 && c.level >= 0 && c.level <= 2*fullCare &&
		!math.IsNaN(c.deviation) && !math.IsNaN(c.slope) && !math.IsInf(c.deviation, 0) && !math.IsInf(c.slope, 0)
}
