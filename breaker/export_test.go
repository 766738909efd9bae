package breaker

import "time"

func (b *Breaker) Allowance() int              { return allowance(b) }
func (b *Breaker) Room(now time.Time) int      { return room(b, now) }
func (b *Breaker) Well() bool                  { return well(b) }
func (b *Breaker) Clean(now time.Time) bool    { return clean(b, now) }
func (b *Breaker) ProbeTimeout() time.Duration { return probeTimeout(b) }
func (b *Breaker) Report()                     { report(b) }
