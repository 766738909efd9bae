package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A shaky store can be down.
type shaky struct {
	store.Memory
	down atomic.Bool
}

func (s *shaky) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if s.down.Load() {
		return nil, errors.New("no <route>")
	}
	return s.Memory.Do(ctx, ops)
}

// The page shows that the store is down, since when and why, how much was decided without
// it, and later that it was down.
func TestC87_PageOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recent Recent
		disk := new(shaky)
		tr, err := headway.NewTransport(base{}, headway.Config{
			Observer: &recent, Store: disk, Secret: []byte("s"),
			Policies: []headway.Policy{{Name: "p", Hosts: []string{"*"}, MaxWait: headway.NoWait, Limits: []limiter.Limit{limiter.Every(time.Minute)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		h, s := Handler(tr, &recent), &scene{Transport: tr}
		want := func(page, stores string) {
			t.Helper()
			_, html := get(h, "GET", "/")
			if got := textOf(html); !strings.Contains(got, page) || page == "" && strings.Contains(got, "store") {
				t.Errorf("want %q in:\n%s", page, got)
			}
			var v struct{ Stores json.RawMessage }
			_, text := get(h, "GET", "/?as=json&q=none")
			if err := json.Unmarshal([]byte(text), &v); err != nil || strings.Join(strings.Fields(string(v.Stores)), " ") != stores {
				t.Errorf("%v: got %s\nwant %s", err, v.Stores, stores)
			}
		}
		s.now(t, "GET", "https://a.test/", "", 1)
		s.now(t, "GET", "https://a.test/", "", 1)
		want("", "")

		disk.down.Store(true)
		time.Sleep(10 * time.Second)
		for range 3 { // one is sent
			s.now(t, "GET", "https://a.test/", "", 1)
		}
		time.Sleep(4 * time.Second)
		want("The store went down 4 s ago: no &lt;route&gt;. In all, 3 requests were decided without it.",
			`[ { "away": true, "began_seconds_ago": 4, "ended_seconds_ago": null, "error": "no \u003croute\u003e", "missed": 3 } ]`)
		want("a.test limit rule spaced 1/1m without the store 2 times, last 4 s ago",
			`[ { "away": true, "began_seconds_ago": 4, "ended_seconds_ago": null, "error": "no \u003croute\u003e", "missed": 3 } ]`)

		disk.down.Store(false)
		s.now(t, "GET", "https://a.test/", "", 1) // finds out
		time.Sleep(time.Second)
		s.now(t, "GET", "https://a.test/", "", 1)
		time.Sleep(2 * time.Second)
		want("The store went down 7 s ago, and came back 2 s ago: no &lt;route&gt;. In all, 4 requests were decided without it.",
			`[ { "away": false, "began_seconds_ago": 7, "ended_seconds_ago": 2, "error": "no \u003croute\u003e", "missed": 4 } ]`)
	})
}

// With several stores, an outage begins with the first that goes down and ends with the
// last that comes up. Events in the wrong order leave no store down.
func TestC87_RecentOfStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var r Recent
		report := func(kind headway.EventKind, want string) {
			t.Helper()
			r.Observe(t.Context(), headway.Event{Kind: kind, Err: errors.New("gone")})
			o := r.outage()
			got := fmt.Sprint(o.down, " ")
			for _, at := range []time.Time{o.began, o.ended} {
				if at.IsZero() {
					got += "- "
				} else {
					got += fmt.Sprint(at.Sub(begin), " ")
				}
			}
			if got != want+" " {
				t.Errorf("%v: got %s, want %s", kind, got, want)
			}
			time.Sleep(time.Second)
		}
		report(headway.EventStoreUp, "-1 - -")
		report(headway.EventStoreDown, "0 - -")
		report(headway.EventStoreDown, "1 2s -")
		report(headway.EventStoreDown, "2 2s -")
		report(headway.EventStoreUp, "1 2s -")
		report(headway.EventStoreUp, "0 2s 5s")
		report(headway.EventStoreDown, "1 6s 5s")
	})
}
