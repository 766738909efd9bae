package headway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A rowStore is a store whose rows another program can write.
type rowStore struct {
	mu   sync.Mutex // guards following fields
	rows map[[2]string][]byte
	do   int
}

func (s *rowStore) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do++
	return store.Run(time.Now(), s, ops)
}

func (s *rowStore) Get(group, name string) ([]byte, error) {
	return s.rows[[2]string{group, name}], nil
}

func (s *rowStore) Put(group, name string, row []byte, _ time.Time) error {
	if s.rows == nil {
		s.rows = map[[2]string][]byte{}
	}
	s.rows[[2]string{group, name}] = slices.Clone(row)
	return nil
}

func (s *rowStore) Len(context.Context) (int, error) { return len(s.rows), nil }

// spoil overwrites the rows whose name has a part, and returns how many there are.
func (s *rowStore) spoil(part string, row []byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.rows {
		if strings.Contains(name[1], part) {
			s.rows[name] = row
			n++
		}
	}
	return n
}

func digestOf(t *testing.T, s *scene, k string) string {
	t.Helper()
	q, err := s.Quota("api.test", "key", k)
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(q.String(), `for "`)
	return strings.TrimSuffix(digest, `"`)
}

// A budget that an earlier version, or another program, has left as something else
// begins anew, is reported once, and harms no other; the store does not count as away.
// As reported: kkoomen/nestjs-throttler-storage-redis 1096 and
// stefanprodan/AspNetCoreRateLimit 338 (every request failed after an upgrade), and
// HeyPuter/puter 3574 (an old row was kept alive, and admitted everybody).
func TestDamagedRowBeginsAnew(t *testing.T) {
	for _, row := range []string{"hello", "17", "\x00", "\xff\xff", "\x01\xff", "\x01\x00\x00\x00\x00\x00\x00\x00\x01"} {
		t.Run(fmt.Sprintf("%q", row), func(t *testing.T) {
			disk := new(rowStore)
			var events []headway.Event
			p := rules(keyed(limiter.PerMinute(2)))
			p[0].MaxWait = headway.NoWait
			playConfig(t, overStore(disk, &events, p), func(s *scene) {
				s.sendAll(key("a"), "A1", "A2")
				s.sendAll(key("b"), "B1")
				digest := digestOf(t, s, "a")
				if n := disk.spoil(digest, []byte(row)); n != 1 {
					s.Fatalf("%d rows of the key", n)
				}
				for i := range 3 {
					p := s.send("A", key("a"))
					if i == 2 {
						s.wantRefused(p, limiter.ReasonLimit, time.Minute)
					} else if p.err != nil {
						s.Errorf("A, number %d: got %v, want it granted anew", i, p.err)
					}
				}
				s.send("B2", key("b"))
				s.wantRefused(s.send("B3", key("b")), limiter.ReasonLimit, time.Minute)
				s.wantStarts("A1@0s A2@0s B1@0s A@0s A@0s B2@0s")
				wantOneRow(t, events, digest, store.ErrDamaged, true)
			})
		})
	}
}

func wantOneRow(t *testing.T, events []headway.Event, digest string, want error, anew bool) {
	t.Helper()
	if got := kindsOf(events, headway.EventStoreDown, headway.EventStoreUp, headway.EventStoreRow); !slices.Equal(got, []headway.EventKind{headway.EventStoreRow}) {
		t.Errorf("told %v, want one row", got)
		return
	}
	e := only(t, events, headway.EventStoreRow)
	var row *store.RowError
	if e.Policy != "*" || e.Host != "api.test" || e.Rule != "key" || e.KeyDigest != digest || e.Away == anew ||
		!errors.As(e.Err, &row) || row.Anew != anew || !errors.Is(e.Err, want) {
		t.Errorf("told %+v", e)
	}
}

// A row of a newer version stays as it is. The requests that need it follow the
// policy's StoreDown, and all others are decided by the store.
func TestNewerRowIsItsOwn(t *testing.T) {
	for down, want := range map[headway.StoreDown]struct {
		starts  string
		refused limiter.Reason
		after   time.Duration
	}{
		headway.StoreDownLocal:  {"A@0s A@0s", limiter.ReasonLimit, time.Minute}, // half of 4
		headway.StoreDownRefuse: {"", limiter.ReasonStore, time.Second},
		headway.StoreDownAdmit:  {"A@0s A@0s A@0s", 0, 0},
	} {
		t.Run(fmt.Sprint(down), func(t *testing.T) {
			disk := new(rowStore)
			var events []headway.Event
			p := rules(keyed(limiter.PerMinute(4)))
			p[0].MaxWait, p[0].Store.Down, p[0].Store.Share = headway.NoWait, down, 0.5
			playConfig(t, overStore(disk, &events, p), func(s *scene) {
				s.sendAll(key("a"), "A1")
				s.sendAll(key("b"), "B1", "B2")
				digest := digestOf(t, s, "a")
				disk.spoil(digest, []byte("\x02to come"))
				for range 3 {
					p := s.send("A", key("a"))
					if strings.Count(want.starts, "A") == 3 || p.err == nil {
						continue
					}
					e := s.wantRefused(p, want.refused, want.after)
					if !errors.Is(e.Store, store.ErrNewer) {
						s.Errorf("got %v, want it to say why the store does not decide", e.Store)
					}
				}
				s.sendAll(key("b"), "B3", "B4")
				s.wantRefused(s.send("B5", key("b")), limiter.ReasonLimit, time.Minute)
				s.wantStarts("A1@0s B1@0s B2@0s " + want.starts + " B3@0s B4@0s")
				wantOneRow(t, events, digest, store.ErrNewer, false)
				for name, row := range disk.rows {
					if strings.Contains(name[1], digest) && string(row) != "\x02to come" {
						s.Errorf("the row is %q now", row)
					}
				}

				// Once it can be read again, that is noticed; and reported again if it cannot.
				events = nil
				disk.spoil(digest, nil)
				if p := s.send("C", key("a")); p.err != nil || len(kindsOf(events, headway.EventStoreRow)) != 0 {
					s.Errorf("got %v, told %v", p.err, events)
				}
				disk.spoil(digest, []byte("\x03"))
				s.send("D", key("a"))
				s.send("E", key("a"))
				wantOneRow(t, events, digest, store.ErrNewer, false)
			})
		})
	}
}

// What holds for starts holds for all that is asked about a row: the forecast of those
// who wait, Delay, Remaining, Spend, and what answers say.
func TestNewerRowOnEveryWay(t *testing.T) {
	disk := new(rowStore)
	var events []headway.Event
	p := rules(keyed(limiter.PerMinute(4)))
	p[0].Store.Share = 0.5
	playConfig(t, overStore(disk, &events, p), func(s *scene) {
		s.sendAll(key("a"), "A1")
		s.sendAll(key("b"), "B1", "B2", "B3", "B4", "B5") // one waits
		digest := digestOf(t, s, "a")
		disk.spoil(digest, []byte("\x02"))
		q, err := s.Quota("api.test", "key", "a")
		if err != nil {
			s.Fatal(err)
		}
		if n := remaining(s, q); n != 2 {
			s.Errorf("%d are left, want the 2 of this process", n)
		}
		spend(s, q, 2)
		if d := delay(s, q, 1); d != time.Minute {
			s.Errorf("the delay is %v, want %v", d, time.Minute)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := q.Wait(ctx, 1); !errors.Is(err, headway.ErrThrottled) {
			s.Errorf("got %v, want it refused at once", err)
		}
		bounded := key("b")
		bounded.call.MaxWait = time.Second
		s.wantRefused(s.send("B6", bounded), limiter.ReasonLimit, time.Minute)
		s.until(time.Minute)
		s.wantStarts("A1@0s B1@0s B2@0s B3@0s B4@0s B5@1m0s")
		wantOneRow(t, events, digest, store.ErrNewer, false)
	})
}

// The row of what is announced to all requests of a host is one host's.
func TestRowOfPauses(t *testing.T) {
	disk := new(rowStore)
	var events []headway.Event
	playConfig(t, overStore(disk, &events, limits(limiter.PerMinute(10))), func(s *scene) {
		s.base.answer = inTurn(asks5)
		s.send("A", ask{})
		if n := disk.spoil("ear", []byte("no pause")); n != 1 {
			s.Fatalf("%d rows of pauses", n)
		}
		s.send("B", ask{})
		s.wantStarts("A@0s B@0s") // what was known of the pause is lost, and that is told
		e := only(t, events, headway.EventStoreRow)
		if e.Host != "api.test" || e.Rule != "" || e.KeyDigest != "" || e.Away {
			s.Errorf("told %+v", e)
		}
		disk.spoil("ear", []byte("\x02"))
		s.send("C", ask{url: "https://other.test/"})
		if got := kindsOf(events, headway.EventStoreDown); len(got) > 0 {
			s.Errorf("told %v", got)
		}
	})
}
