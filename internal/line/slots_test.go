package line

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
	"pgregory.net/rapid"
)

// A flight is a request that takes a slot, or waits for an answer.
type flight struct {
	id     int
	cancel context.CancelFunc
	needs  []Need
	noSlot bool
	gate   *Gate
	by     law.Time
	told   law.Time // Never: not bound
	grant  Grant
	end    string
	at     law.Time // its start
	ended  law.Time // its answer; Never: in flight
}

func (f *flight) started() bool { return f.end == "started" }

// A tower watches what cannot be planned: slots, gates, and answers that come
// when they come. It knows no plan, only what must hold at every instant.
type tower struct {
	l       *Line
	slots   int
	specs   []law.Spec
	budgets []*Budget
	gates   []*Gate
	flights []*flight
	log     []string
}

func (w *tower) arrive(needs []Need, noSlot bool, gate *Gate, wait law.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	now := int64(w.l.Now())
	f := &flight{id: len(w.flights), cancel: cancel, needs: needs, noSlot: noSlot, gate: gate, by: law.Never - 1, told: now, ended: law.Never}
	if wait >= 0 {
		f.by = now + wait
	}
	if r := w.l.Delay(&Ask{Needs: slices.Clone(needs), NoSlot: noSlot}, gate); r != nil {
		if f.told = now + int64(r.RetryAfter); r.AtLeast {
			f.told = law.Never
		}
	}
	w.flights = append(w.flights, f)
	ask := &Ask{Needs: needs, MaxWait: time.Duration(wait), NoSlot: noSlot}
	go func() {
		defer cancel()
		g, needs, refusal, err := w.l.Enter(ctx, ask, gate, nil)
		f.needs = needs
		switch {
		case err != nil:
			f.end = "cancelled"
		case refusal != nil:
			f.end = "refused"
		default:
			f.end, f.grant, f.at = "started", g, int64(g.At)
			w.l.Sent(&g)
		}
		if err == nil && refusal != nil && refusal.Reason != ByBreaker && int64(w.l.Now()) != now && int64(w.l.Now()) != f.by {
			f.end = fmt.Sprintf("refused at %d, neither at once nor at the end of its wait", w.l.Now())
		}
	}()
	synctest.Wait()
}

// pass lets time pass. The race detector does not know that what a timer does
// comes after all before; the line's lock tells it.
func (w *tower) pass(d time.Duration) {
	w.l.Waiting()
	time.Sleep(d)
	synctest.Wait()
}

func (w *tower) answer(f *flight) {
	f.ended = int64(w.l.Now())
	w.l.Responded(f.needs)
	if f.grant.Slot {
		w.l.Release()
	}
	if p := &f.grant.Pass; p.gate != nil {
		if b := p.gate.Breaker.(*fakeBreaker); p.probe && b.open && b.ticket == p.Ticket {
			b.places++
		}
		w.l.EndPass(p)
	}
	synctest.Wait()
}

// turn takes a gate to its next state: free, open, half-open, slow start.
func (w *tower) turn(g *Gate, n int) string {
	b := g.Breaker.(*fakeBreaker)
	switch {
	case g.Free():
		b.open, b.places = true, 0
	case b.open && b.places == 0 && b.ticket == nil:
		b.places, b.ticket = n, new(int)
	case b.open:
		b.open, b.ticket, b.allowance = false, nil, n
	default:
		b.allowance = math.MaxInt
	}
	w.l.RecheckGate(g)
	synctest.Wait()
	return fmt.Sprintf("open %t, %d places, %d allowed", b.open, b.places, b.allowance)
}

// check returns what does not hold now.
func (w *tower) check() string {
	synctest.Wait()
	now := int64(w.l.Now())
	waiting, inFlight := w.l.Waiting()
	flying := 0
	for _, f := range w.flights {
		if f.started() && f.grant.Slot && f.ended == law.Never {
			flying++
		}
		switch {
		case strings.Contains(f.end, "neither"):
			return f.end
		case f.started() && f.at > f.by:
			return fmt.Sprintf("%d started at %d, after the end of its wait at %d", f.id, f.at, f.by)
		case f.end == "" && f.by < now:
			return fmt.Sprintf("%d still waits at %d, after the end of its wait at %d", f.id, now, f.by)
		case f.started() && f.at > f.told:
			return fmt.Sprintf("%d was told %d for certain, and started at %d", f.id, f.told, f.at)
		case f.end == "" && now > f.told:
			return fmt.Sprintf("%d was told %d for certain, and still waits at %d", f.id, f.told, now)
		}
	}
	if flying != inFlight {
		return fmt.Sprintf("%d slots are taken, %d have one", inFlight, flying)
	}
	if w.slots > 0 && inFlight > w.slots {
		return fmt.Sprintf("%d of %d slots are taken", inFlight, w.slots)
	}
	// Those with the same needs start in order of arrival.
	for i, f := range w.flights {
		for _, g := range w.flights[:i] {
			if g.end == "" && f.started() && f.noSlot == g.noSlot && f.gate == g.gate && slices.EqualFunc(f.needs, g.needs, func(a, b Need) bool { return a.B == b.B }) {
				return fmt.Sprintf("%d started before %d", f.id, g.id)
			}
		}
	}
	// The laws' promises, strict ones too.
	for i, s := range w.specs {
		var sum int64
		for _, f := range w.flights {
			for _, n := range f.needs {
				counts := f.at > now-int64(s.Per)
				if s.Strict {
					counts = f.ended > now-int64(s.Per)
				}
				if n.B == w.budgets[i] && f.started() && counts {
					sum += n.Cost
				}
			}
		}
		if sum > s.N {
			return fmt.Sprintf("%d units of %v count at %d", sum, s, now)
		}
	}
	// Nobody waits for what is there.
	l := w.l.lockOnly()
	defer l.mu.Unlock()
	for r := l.first; r != nil; r = r.next {
		first := r.class.first == r || !l.many && l.first == r
		if p := l.real(r.needs, now, now); first && r.at <= now && p.at <= now && (r.noSlot || !l.full()) && !r.gate.holds(now) && l.isPlanned(r) {
			return fmt.Sprintf("request %d, planned for %d, waits at %d though nothing is missing", r.seq, r.at, now)
		}
	}
	for i, g := range w.gates {
		before, flying := 0, 0
		for _, f := range w.flights {
			if f.gate == g && f.end == "" {
				before++
			}
			if f.gate == g && f.started() && f.ended == law.Never && f.grant.Pass.generation == g.generation && g.generation > 0 {
				flying++
			}
		}
		if before != g.waiting || flying != g.inFlight {
			return fmt.Sprintf("gate %d counts %d before it and %d in flight; they are %d and %d", i, g.waiting, g.inFlight, before, flying)
		}
		if b := g.Breaker.(*fakeBreaker); b.open && before > b.places {
			return fmt.Sprintf("%d stand before gate %d, which has %d places", before, i, b.places)
		}
	}
	if waiting == 0 && (w.l.timerAt != law.Never || w.l.chain.first != nil) {
		return "nobody waits, and the timer is set"
	}
	return ""
}

// TestSlotsAndAnswers: C36, S15, S70, in-flight caps, strict laws and gates, in
// lines where all need the same and where needs differ.
func TestSlotsAndAnswers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(0, 3).Draw(rt, "slots")
		w := &tower{slots: slots}
		for range rapid.IntRange(0, 2).Draw(rt, "gates") {
			b := &fakeBreaker{allowance: math.MaxInt, timeout: time.Duration(rapid.IntRange(1, 30).Draw(rt, "lease"))}
			w.gates = append(w.gates, &Gate{Breaker: b})
		}
		for range 3 - rapid.IntRange(0, 2).Draw(rt, "budgets") {
			s := law.Spec{N: rapid.Int64Range(1, 3).Draw(rt, "n"), Per: time.Duration(12 - rapid.Int64Range(0, 10).Draw(rt, "per"))}
			s.Strict = rapid.Bool().Draw(rt, "strict")
			w.specs = append(w.specs, s)
		}
		plain := rapid.Bool().Draw(rt, "plain")
		type step struct {
			op, which int
			by        law.Time
			needs     []int
			cost      int64
			noSlot    bool
			gate      *Gate
		}
		var steps []step
		for range rapid.IntRange(20, 60).Draw(rt, "steps") {
			s := step{op: rapid.IntRange(0, 10).Draw(rt, "op"), which: rapid.IntRange(0, 7).Draw(rt, "which"), by: rapid.Int64Range(0, 14).Draw(rt, "by"), cost: 1}
			for b := range w.specs {
				if plain || rapid.Bool().Draw(rt, "needs") {
					s.needs = append(s.needs, b)
				}
			}
			s.noSlot = !plain && rapid.IntRange(0, 3).Draw(rt, "no slot") == 0
			if n := len(w.gates); n > 0 && !s.noSlot {
				if i := rapid.IntRange(0, n).Draw(rt, "gate"); i > 0 {
					s.gate = w.gates[i-1]
				}
			}
			steps = append(steps, s)
		}
		var bad string
		synctest.Test(t, func(*testing.T) {
			w.l = New()
			w.l.SetCaps(0, slots)
			for _, s := range w.specs {
				w.budgets = append(w.budgets, w.l.NewBudget(&s))
			}
			say := func(format string, args ...any) {
				w.log = append(w.log, fmt.Sprintf("%4d %s", w.l.Now(), fmt.Sprintf(format, args...)))
			}
			for _, s := range steps {
				flying := slices.DeleteFunc(slices.Clone(w.flights), func(f *flight) bool { return !f.started() || f.ended < law.Never })
				waiting := slices.DeleteFunc(slices.Clone(w.flights), func(f *flight) bool { return f.end != "" })
				switch {
				case s.op < 4:
					var needs []Need
					for _, b := range s.needs {
						needs = append(needs, Need{B: w.budgets[b], Cost: s.cost})
					}
					wait := law.Time(-1)
					if s.op == 0 {
						wait = s.by * 2
					}
					say("%d arrives: needs %v, no slot %v, gate %d, waits %d", len(w.flights), s.needs, s.noSlot, slices.Index(w.gates, s.gate), wait)
					w.arrive(needs, s.noSlot, s.gate, wait)
				case s.op < 6:
					say("advance %d", s.by)
					w.pass(time.Duration(s.by))
				case s.op < 9 && len(flying) > 0:
					f := flying[s.which%len(flying)]
					say("%d ends", f.id)
					w.answer(f)
				case s.op == 9 && len(waiting) > 0:
					f := waiting[s.which%len(waiting)]
					say("%d is cancelled", f.id)
					f.cancel()
					synctest.Wait()
				case s.op == 10 && s.gate != nil:
					say("gate %d: %s", slices.Index(w.gates, s.gate), w.turn(s.gate, s.which%4))
				}
				if bad = w.check(); bad != "" {
					break
				}
			}
			for i := 0; bad == "" && i < 10_000; i++ {
				for _, f := range w.flights {
					if f.started() && f.ended == law.Never {
						w.answer(f)
						bad = w.check()
					}
				}
				if n, f := w.l.Waiting(); n+f == 0 || bad != "" {
					break
				}
				w.pass(1)
				bad = w.check()
			}
			if n, f := w.l.Waiting(); bad == "" && n+f > 0 {
				bad = fmt.Sprintf("in the end %d wait and %d are in flight", n, f)
			}
			for _, f := range w.flights {
				f.cancel()
			}
			synctest.Wait()
		})
		if bad != "" {
			rt.Fatalf("%d slots, %v\n%s\n%s", slots, w.specs, strings.Join(w.log, "\n"), bad)
		}
	})
}
