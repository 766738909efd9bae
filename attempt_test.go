package headway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headway-go/headway"
	attempts "github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/limiter"
)

// attempt asks as attempt n of its call.
func attempt(n int) ask { return ask{ctx: headway.WithAttempt(context.Background(), n)} }

func TestAttemptFrom(t *testing.T) {
	for _, tt := range []struct {
		ctx  context.Context
		want int
	}{
		{context.Background(), 0},
		{headway.WithAttempt(context.Background(), 0), 0},
		{headway.WithAttempt(context.Background(), 3), 3},
		{headway.WithAttempt(headway.WithAttempt(context.Background(), 3), 1), 1},
		{headway.WithAttempt(context.Background(), -1), 0},
	} {
		if got := headway.AttemptFrom(tt.ctx); got != tt.want {
			t.Errorf("got %d, want %d", got, tt.want)
		}
	}
}

// S16: every attempt counts, or only the first of a call.
func TestS16_FirstAttemptOnly(t *testing.T) {
	every := headway.Rule{Name: "every", Limit: limiter.PerMinute(8)}
	first := headway.Rule{Name: "first", Limit: limiter.PerMinute(2), FirstAttemptOnly: true}
	play(t, rules(every, first), func(s *scene) {
		for n := range 4 {
			s.send(fmt.Sprint("A", n), attempt(n))
		}
		s.wantStarts("A0@0s A1@0s A2@0s A3@0s")
		if got := s.remaining("api.test", "every"); got != 4 {
			s.Errorf("every: got %d left, want 4", got)
		}
		if got := s.remaining("api.test", "first"); got != 1 {
			s.Errorf("first: got %d left, want 1", got)
		}
		s.send("B", ask{})
		for n, want := range []time.Duration{time.Minute, 0} { // only a retry may still come
			if d, err := s.Delay(attempt(n).request("C")); d != want || err != nil {
				s.Errorf("attempt %d: got a delay of %v, %v, want %v", n, d, err, want)
			}
		}
	})
}

// A rule for first attempts may be the only one.
func TestS16_OnlyFirstAttempts(t *testing.T) {
	play(t, rules(headway.Rule{Name: "first", Limit: limiter.PerMinute(1), FirstAttemptOnly: true}), func(s *scene) {
		s.send("A", attempt(0))
		s.send("B", attempt(1))
		s.send("C", attempt(0))
		s.wantStarts("A@0s B@0s C@1m0s")
	})
}

// What is free to ask by waits for no limit, but needs its keys and its turn.
func TestFreeAttempt(t *testing.T) {
	free := ask{ctx: attempts.With(context.Background(), &attempts.Attempt{N: 1, Free: true})}
	key := headway.Rule{Name: "key", Limit: limiter.PerMinute(1), Key: headway.FromCallKey, Path: "/keyed"}
	p := rules(key, headway.Rule{Name: "r", Limit: limiter.PerMinute(1), Cost: headway.FromCallCost})
	play(t, p, func(s *scene) {
		s.send("A", ask{})
		for _, tt := range []struct {
			ask  ask
			want time.Duration
		}{{ask{}, time.Minute}, {free, 0}} {
			if d, err := s.Delay(tt.ask.request("B")); d != tt.want || err != nil {
				s.Errorf("got a delay of %v, %v, want %v", d, err, tt.want)
			}
		}
		free.url = "https://api.test/keyed"
		if _, err := s.Delay(free.request("B")); !errors.Is(err, headway.ErrKey) {
			s.Errorf("got %v, want a *KeyError", err)
		}
	})
}

func TestEventAttempt(t *testing.T) {
	var events []headway.Event
	p := limits(limiter.PerHour(2))
	p[0].MaxWait = headway.NoWait
	playConfig(t, headway.Config{Policies: p, Observer: collect(&events)}, func(s *scene) {
		for n := range 3 {
			s.send("A", attempt(n))
		}
	})
	got := ""
	for _, e := range events {
		got += fmt.Sprintf("%v %d ", e.Kind, e.Attempt)
	}
	if want := "start 0 start 1 refused 2 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// MaxWait tells the wait budget that RoundTrip goes by.
func TestMaxWait(t *testing.T) {
	key := headway.Rule{Name: "key", Limit: limiter.PerSecond(9), Key: headway.FromCallKey, Path: "/keyed"}
	for name, tt := range map[string]struct {
		policy headway.Policy
		ask    ask
		want   time.Duration
	}{
		"no bound":         {headway.Policy{}, ask{}, limiter.Never},
		"a duration":       {headway.Policy{MaxWait: time.Minute}, ask{}, time.Minute},
		"NoWait":           {headway.Policy{MaxWait: headway.NoWait}, ask{}, 0},
		"OneWindow":        {headway.Policy{MaxWait: headway.OneWindow, Limits: []limiter.Limit{limiter.PerSecond(1)}}, ask{}, time.Second},
		"a call's":         {headway.Policy{MaxWait: time.Minute}, ask{call: headway.Call{MaxWait: time.Hour}}, time.Hour},
		"a call's forever": {headway.Policy{MaxWait: time.Minute}, ask{call: headway.Call{MaxWait: headway.WaitForever}}, limiter.Never},
		"a bypass":         {headway.Policy{MaxWait: time.Minute}, ask{call: headway.Call{Bypass: true}}, limiter.Never},
		"another host":     {headway.Policy{MaxWait: time.Minute, Hosts: []string{"other.test"}}, ask{}, limiter.Never},
		"no key":           {headway.Policy{MaxWait: time.Minute, Rules: []headway.Rule{key}}, ask{url: "https://api.test/keyed"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.policy.Hosts == nil {
				tt.policy.Hosts = []string{"*"}
			}
			tr := newTransport(t, new(base), headway.Config{Policies: []headway.Policy{tt.policy}})
			got, err := tr.WaitBudget(tt.ask.request("A"))
			if _, isKey := err.(*headway.KeyError); isKey != (tt.want < 0) || got != max(tt.want, 0) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}
