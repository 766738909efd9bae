package storeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A remote is a store that decides 2 ms after it is asked, and whose results arrive 2 ms later.
// It notes the operations of each round trip, with the milliseconds at which it was sent.
type remote struct {
	store.Memory
	epoch time.Time

	mu     sync.Mutex // guards following fields
	trips  []string
	starts []string // see enter
	err    error
	hangs  chan struct{} // it returns when that is closed; nil: it does not hang
}

func (s *remote) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	trip := fmt.Sprintf("%d:", time.Since(s.epoch).Milliseconds())
	for i := range ops {
		trip += " " + wordOf(&ops[i])
	}
	s.mu.Lock()
	s.trips = append(s.trips, trip)
	err, hangs := s.err, s.hangs
	s.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	time.Sleep(2 * time.Millisecond)
	if err != nil {
		return nil, err
	}
	results, err := s.Memory.Do(ctx, ops)
	time.Sleep(2 * time.Millisecond)
	return results, err
}

func (s *remote) set(err error, hangs chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs = err, hangs
}

func wordOf(op *store.Op) string {
	switch op.Kind {
	case store.OpTake:
		return "take"
	case store.OpGive:
		return "give"
	case store.OpReturn:
		return "return"
	case store.OpDone:
		return "done"
	case store.OpRead:
		return "read"
	case store.OpSuccess:
		return fmt.Sprint("success ", op.Taken)
	case store.OpPause:
		word := fmt.Sprintf("%s paused %v", op.Audience, op.Pause.For)
		if op.Pause.Grow {
			word += fmt.Sprint("+", op.Pause.Started)
		}
		return word
	case store.OpLearn:
		return fmt.Sprintf("%s has %d", op.Audience, op.Learn.Left)
	}
	return fmt.Sprint(op.Kind)
}

func (s *remote) wantTrips(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.trips, want) {
		t.Errorf("the round trips are\n%s\nwant\n%s", strings.Join(s.trips, "\n"), strings.Join(want, "\n"))
	}
}

// remotely runs f in a bubble, with a store and a line of it under a limit of 3 per second.
func remotely(t *testing.T, f func(t *testing.T, s *remote, l *Line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &remote{epoch: time.Now()}
		l := lineOf(&Client{Store: s, Max: 9}, "g")
		defer l.Unuse()
		f(t, s, l)
	})
}

func lineOf(c *Client, group string) *Line {
	p := &Plan{Limits: map[string]limiter.Limit{"b": {N: 3, Per: time.Second}, "s": {N: 1, Per: time.Second, Strict: true}}}
	return c.Line(nil, group, func() *Plan { return p })
}

func pauseOp(audience string, d time.Duration, grow bool, started store.Instant) store.Op {
	return store.Op{Kind: store.OpPause, Audience: audience, Pause: &store.Pause{For: d, Grow: grow, Most: time.Minute, Started: started}}
}

func (l *Line) pause(audience string, d time.Duration) {
	l.AnnouncePause(pauseOp(audience, d, false, 0), Raised{Lasts: d})
}

func (l *Line) left(audience string, n int64, started store.Instant) {
	l.AnnounceLimit(store.Op{Kind: store.OpLearn, Audience: audience, Learn: &store.Learn{Left: n, Limit: 99, Reset: time.Minute, Started: started}})
}

func (l *Line) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
}

// enter has a request wait and start, and notes when it has.
func (s *remote) enter(t *testing.T, l *Line, name string) {
	g, _, err := l.Enter(t.Context(), &Ask{Needs: []Need{{"b", 1}}, Audiences: []string{"all"}, MaxWait: -1})
	if err != nil {
		name += ": " + err.Error()
	} else {
		defer l.Done(g)
		defer l.Sent(g)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = append(s.starts, fmt.Sprintf("%s@%d", name, time.Since(s.epoch).Milliseconds()))
}

func (s *remote) wantStarts(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.starts, " "); got != want {
		t.Errorf("started %s, want %s", got, want)
	}
}

// The example of unsent.go.
func TestResponsesDoNotWait(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		l.pause("all", 5*time.Second)
		if now := time.Since(s.epoch); now != 0 {
			t.Errorf("it has waited until %v", now)
		}
		time.Sleep(time.Millisecond)
		go s.enter(t, l, "a3")
		synctest.Wait()
		l.left("all", 2, 0)
		l.flush()
		time.Sleep(10 * time.Second)
		s.wantTrips(t, "0: all paused 5s", "4: all has 2 take", "5004: take")
		s.wantStarts(t, "a3@5008")
	})
}

// What one response brings is sent together, and with the question of a request that arrives
// meanwhile.
func TestUnsentIsJoined(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		l.left("all", 5, 1)
		l.left("one", 7, 1)
		l.Succeeded([]string{"one", "all"}, 1)
		l.pause("one", time.Second)
		time.Sleep(10 * time.Millisecond)
		l.left("all", 4, 2) // a response that is being read
		s.enter(t, l, "A")
		l.flush()
		time.Sleep(10 * time.Millisecond)
		s.wantTrips(t, "0: all has 5 one has 7 success 1 one paused 1s", "10: all has 4 take")
	})
}

// Of one thing one is sent: see merge. All is noted at 1 ms, while a round trip is out, and sent
// at 4 ms.
func TestUnsentIsMerged(t *testing.T) {
	growing := func(l *Line, d time.Duration, started store.Instant) {
		l.AnnouncePause(pauseOp("all", d, true, started), Raised{Lasts: d})
	}
	success := func(l *Line, started store.Instant) { l.Succeeded([]string{"all"}, started) }
	for name, tc := range map[string]struct {
		note func(*Line)
		want string
	}{
		"the longest pause": {func(l *Line) {
			l.pause("all", 3*time.Second)
			l.pause("all", 9*time.Second)
			l.pause("all", 5*time.Second)
		}, "all paused 8.997s"},
		"of each audience": {func(l *Line) {
			l.pause("all", 3*time.Second)
			l.pause("one", 9*time.Second)
		}, "all paused 2.997s one paused 8.997s"},
		"the newest number": {func(l *Line) {
			l.left("all", 9, 5)
			l.left("all", 7, 8)
			l.left("all", 8, 6)
		}, "all has 7"},
		"of two at once the later": {func(l *Line) {
			l.left("all", 9, 5)
			l.left("all", 8, 5)
		}, "all has 8"},
		"a pause that grows": {func(l *Line) {
			growing(l, time.Second, 7)
			growing(l, time.Second, 9)
			growing(l, time.Second, 8)
		}, "all paused 1s+9"},
		"beside one with a length": {func(l *Line) {
			growing(l, time.Second, 5)
			l.pause("all", 3*time.Second)
			growing(l, 2*time.Second, 7)
		}, "all paused 2s+7 all paused 2.997s"},
		"successes": {func(l *Line) {
			success(l, 5)
			success(l, 7)
			success(l, 6)
		}, "success 7"},
		"but not across a pause": {func(l *Line) {
			success(l, 5)
			growing(l, time.Second, 5)
			success(l, 7)
			success(l, 8)
		}, "success 5 all paused 1s+5 success 8"},
		"in order": {func(l *Line) {
			l.pause("all", 3*time.Second)
			l.left("all", 9, 5)
			l.pause("all", 4*time.Second)
		}, "all paused 3.997s all has 9"},
	} {
		t.Run(name, func(t *testing.T) {
			remotely(t, func(t *testing.T, s *remote, l *Line) {
				l.pause("first", time.Hour)
				time.Sleep(time.Millisecond)
				tc.note(l)
				l.flush()
				time.Sleep(20 * time.Millisecond)
				s.wantTrips(t, "0: first paused 1h0m0s", "4: "+tc.want)
			})
		})
	}
}

// A pause counts from when the response came, and one that is over is not sent.
func TestAPauseThatIsOverIsNotSent(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		l.pause("first", time.Hour)
		time.Sleep(time.Millisecond)
		l.pause("a", 3*time.Millisecond)
		l.pause("b", 3*time.Millisecond+1)
		time.Sleep(20 * time.Millisecond)
		s.wantTrips(t, "0: first paused 1h0m0s", "4: b paused 1ns")
	})
}

// What the store decides without knowing of a pause is not used: neither what a round trip
// brings that was out, nor what is reserved.
func TestAPauseRecallsWhatIsOut(t *testing.T) {
	for name, tc := range map[string]struct {
		audience string
		batch    int
		trips    []string
		starts   string
	}{
		"of all":    {"all", 0, []string{"0: take", "4: all paused 999ms give take", "1007: take"}, "A@1011"},
		"reserved":  {"all", 3, []string{"0: take", "4: all paused 999ms return give take", "1007: take"}, "A@1011"},
		"of others": {"one", 0, []string{"0: take", "4: one paused 999ms"}, "A@4"},
	} {
		t.Run(name, func(t *testing.T) {
			remotely(t, func(t *testing.T, s *remote, l *Line) {
				l.plan().Batch = tc.batch
				go s.enter(t, l, "A")
				time.Sleep(3 * time.Millisecond) // the store has granted it
				l.pause(tc.audience, time.Second)
				time.Sleep(2 * time.Second)
				s.wantStarts(t, tc.starts)
				s.mu.Lock()
				s.trips = s.trips[:min(len(s.trips), len(tc.trips))] // what is reserved is returned later
				s.mu.Unlock()
				s.wantTrips(t, tc.trips...)
			})
		})
	}
}

// What is reserved is not used once a pause is noted.
func TestAPauseReturnsWhatIsReserved(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		l.plan().Batch = 3
		s.enter(t, l, "A")
		s.enter(t, l, "B") // with what is reserved
		time.Sleep(time.Second)
		s.enter(t, l, "C")
		l.pause("all", 3*time.Second)
		s.enter(t, l, "D")
		s.wantStarts(t, "A@4 B@4 C@1008 D@4016")
	})
}

// The same holds while the body of a refusal is read.
func TestAHaltRecallsWhatIsOut(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		go s.enter(t, l, "A")
		time.Sleep(3 * time.Millisecond)
		release := l.Halt("all", "")
		time.Sleep(7 * time.Millisecond)
		release()
		time.Sleep(time.Second)
		s.wantTrips(t, "0: take", "4: give", "10: take")
		s.wantStarts(t, "A@14")
	})
}

// One goroutine sends what is unsent of all lines, and ends with that.
func TestOneSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{epoch: time.Now()}
		c := &Client{Store: s, Max: 9}
		before := runtime.NumGoroutine()
		var lines []*Line
		for i := range 100 {
			lines = append(lines, lineOf(c, fmt.Sprint(i)))
			lines[i].pause("all", time.Hour)
		}
		time.Sleep(time.Millisecond)
		for i := range 100 {
			lines[i].pause("all", 2*time.Hour)
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 1 {
			t.Errorf("%d goroutines, want one", n)
		}
		for _, l := range lines {
			l.Unuse()
		}
		time.Sleep(30 * time.Millisecond)
		if n := runtime.NumGoroutine() - before; n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
		s.mu.Lock()
		if len(s.trips) > 3 { // the first lines may be sent alone
			t.Errorf("%d round trips", len(s.trips))
		}
		s.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sender != nil || c.count != 0 || len(c.unsent) != 0 {
			t.Errorf("%d are unsent", c.count)
		}
		for _, l := range lines {
			if l.users != 0 {
				t.Errorf("%d still use the line of %s", l.users, l.Group())
			}
		}
	})
}

// No more than mostUnsent is noted: numbers are dropped first, then successes, then the pauses
// that end first. What is dropped makes way for what matters as much or more.
func TestUnsentIsBounded(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		other := lineOf(l.client, "other")
		defer other.Unuse()
		count := func(kind store.OpKind) (n int) {
			l.client.mu.Lock()
			defer l.client.mu.Unlock()
			for _, l := range l.client.unsent {
				for _, e := range l.unsent {
					if e.op.Kind == kind {
						n++
					}
				}
				if len(l.unsent) != len(l.unsentOf) {
					t.Errorf("%d are noted, and %d found", len(l.unsent), len(l.unsentOf))
				}
			}
			return n
		}
		want := func(limits, successes, pauses int) {
			t.Helper()
			if l, s, p := count(store.OpLearn), count(store.OpSuccess), count(store.OpPause); l != limits || s != successes || p != pauses {
				t.Errorf("%d numbers, %d successes and %d pauses are noted, want %d, %d and %d", l, s, p, limits, successes, pauses)
			}
		}
		hangs := make(chan struct{})
		s.set(nil, hangs)
		l.pause("first", time.Hour)
		other.pause("first", time.Hour)
		time.Sleep(time.Millisecond)
		other.left("oldest", 1, 0)
		time.Sleep(time.Millisecond)
		for i := range mostUnsent {
			l.left(fmt.Sprint(i), 1, 0)
		}
		want(mostUnsent, 0, 0)
		for i := range 10 {
			other.Succeeded([]string{fmt.Sprint(i)}, 1)
		}
		want(mostUnsent-10, 10, 0)
		for i := range mostUnsent {
			l.pause(fmt.Sprint(i), time.Hour+time.Duration(i))
		}
		want(0, 0, mostUnsent)
		l.left("new", 1, 0)
		l.Succeeded([]string{"new"}, 1)
		l.pause("short", time.Hour-time.Second)
		want(0, 0, mostUnsent)
		other.pause("long", 2*time.Hour)
		want(0, 0, mostUnsent)
		s.set(nil, nil)
		close(hangs)
		time.Sleep(10 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		sent := s.trips[len(s.trips)-1]
		for word, was := range map[string]bool{" 0 paused": false, " 1 paused": true, "short": false, "long": true, "oldest": false} {
			if strings.Contains(sent, word) != was {
				t.Errorf("%q was sent: %v, want %v", word, !was, was)
			}
		}
	})
}

// A store that fails or hangs: pauses and successes stay noted, and it receives them when it
// is up. Numbers are lost. The goroutine ends.
func TestUnsentWhileTheStoreIsDown(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprintf("hangs=%v", hangs), func(t *testing.T) {
			remotely(t, func(t *testing.T, s *remote, l *Line) {
				var gone chan struct{}
				if hangs {
					gone = make(chan struct{})
				}
				s.set(errors.New("gone"), gone)
				l.left("all", 5, 1)
				l.Succeeded([]string{"all"}, 1)
				l.pause("all", 60*time.Second)
				time.Sleep(time.Millisecond)
				l.pause("one", 60*time.Second)
				l.left("all", 4, 2)
				go s.enter(t, l, "A")
				time.Sleep(5 * time.Second)
				if hangs {
					s.wantStarts(t, "A: the store is down@2000")
				} else {
					s.wantStarts(t, "A: the store is down@2")
				}
				l.pause("one", 80*time.Second) // a probe begins, which fails
				l.Halt("all", "")()            // the line looks for what is due
				if err := l.AnnounceLimit(store.Op{Kind: store.OpLearn, Learn: new(store.Learn)}); err != ErrDown {
					t.Errorf("got %v, want %v", err, ErrDown)
				}
				time.Sleep(5 * time.Second)
				s.set(nil, nil)
				if hangs {
					close(gone)
				}
				time.Sleep(time.Second)
				s.mu.Lock()
				s.trips = nil
				s.mu.Unlock()
				l.client.available() // finds out that it is up
				time.Sleep(time.Second)
				s.wantTrips(t, "11001: read success 1 all paused 48.999s one paused 1m14s")
			})
		})
	}
}

// The ends of strict units are sent in the same way, and what waits for the instant gets it. Where
// half of the notes are such ends, the response waits for the store.
func TestStrictUnitsEndUnsent(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		g, _, err := l.Enter(t.Context(), &Ask{Needs: []Need{{"s", 1}}, MaxWait: -1})
		if err != nil {
			t.Fatal(err)
		}
		l.Sent(g)
		l.Responded(t.Context(), g)
		if now := time.Since(s.epoch); now != 4*time.Millisecond {
			t.Errorf("it has waited until %v", now)
		}
		l.Done(g)
		if at := g.RespondedAt(t.Context()); at != s.epoch.Add(6*time.Millisecond).UnixNano() || time.Since(s.epoch) != 8*time.Millisecond {
			t.Errorf("got %v after %v", time.Duration(at-s.epoch.UnixNano()), time.Since(s.epoch))
		}
		s.wantTrips(t, "0: take", "4: done")
	})
	t.Run("too many", func(t *testing.T) {
		remotely(t, func(t *testing.T, s *remote, l *Line) {
			ended := func(id uint64) *Grant {
				g := &Grant{At: 1, strict: true, take: store.Op{ID: id}}
				l.Responded(t.Context(), g)
				return g
			}
			for i := range mostReceipts {
				ended(uint64(i + 1))
			}
			if now := time.Since(s.epoch); now != 0 {
				t.Errorf("it has waited until %v", now)
			}
			g := ended(mostReceipts + 1)
			if at := g.RespondedAt(t.Context()); at != s.epoch.Add(2*time.Millisecond).UnixNano() || time.Since(s.epoch) != 4*time.Millisecond {
				t.Errorf("got %v after %v", time.Duration(at-s.epoch.UnixNano()), time.Since(s.epoch))
			}
		})
	})
	t.Run("down", func(t *testing.T) {
		remotely(t, func(t *testing.T, s *remote, l *Line) {
			s.set(errors.New("gone"), nil)
			first, second := &Grant{At: 1, strict: true}, &Grant{At: 2, strict: true}
			first.take.ID, second.take.ID = 1, 2
			l.Responded(t.Context(), first)
			l.flush()
			time.Sleep(time.Millisecond)
			l.Responded(t.Context(), second)
			if a, b := first.RespondedAt(t.Context()), second.RespondedAt(t.Context()); a != 1 || b != 2 || time.Since(s.epoch) != 2*time.Millisecond {
				t.Errorf("got %d and %d after %v, want the starts once the store is down", a, b, time.Since(s.epoch))
			}
			s.set(nil, nil)
			time.Sleep(time.Second)
			l.client.available()
			time.Sleep(time.Second)
			s.wantTrips(t, "0: done", "1002: read done done")
		})
	})
}

// A pause that other processes have made grow is longer than this process knew. That is
// noticed once.
func TestTheStoreKnowsALongerPause(t *testing.T) {
	remotely(t, func(t *testing.T, s *remote, l *Line) {
		other := lineOf(&Client{Store: s, Max: 9}, "g")
		defer other.Unuse()
		for i := range 3 {
			other.AnnouncePause(pauseOp("all", time.Second, true, time.Now().UnixNano()), Raised{Lasts: time.Second << i})
			time.Sleep(time.Minute)
		}
		if n := other.client.Notices(); n != nil {
			t.Errorf("the process that knew it has notices %v", n)
		}
		j := line.Journal{}
		a := &Ask{Needs: []Need{{"b", 1}}, Audiences: []string{"all"}, MaxWait: -1, Journal: &j}
		l.Halt("all", "")
		go l.Enter(t.Context(), a)
		time.Sleep(time.Second)
		r := Raised{Lasts: time.Second, Status: 429, News: "news"}
		l.AnnouncePause(pauseOp("all", time.Second, true, time.Now().UnixNano()), r)
		now := time.Now()
		time.Sleep(10 * time.Millisecond)
		list := l.client.Notices()
		if len(list) != 1 || *list[0].Raised != r || list[0].Paused != 8*time.Second || list[0].At.Sub(now) != 4*time.Millisecond {
			t.Errorf("got %+v, want a notice of 8s", list)
		}
		want := []line.Span{{From: time.Second, To: 2 * time.Second, Status: 429}, {From: time.Second + 4*time.Millisecond, To: 9*time.Second + 4*time.Millisecond, Status: 429}}
		if !slices.Equal(j.Pauses, want) {
			t.Errorf("the journal has %v, want %v", j.Pauses, want)
		}
	})
}
