package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/headwaytest"
)

type noProgress struct{}

func (noProgress) imported(*service)  {}
func (noProgress) tick(time.Duration) {}
func (noProgress) end()               {}

// TestIdeal checks the ideal times: without a network, each import takes exactly as long
// as its own limit requires.
func TestIdeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, base := services(), make(headwaytest.ByHost)
		for _, s := range all {
			s.host = s.name + ".example.com"
			s.start().MaxLatency = 0
			base[s.host] = s.vendor
		}
		client, err := newClient(base, all)
		if err != nil {
			t.Fatal(err)
		}
		if err := importAll(client, all, noProgress{}); err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.done != s.items || s.took != s.ideal {
				t.Errorf("%s: got %d items in %v, want %d in %v", s.name, s.done, s.took, s.items, s.ideal)
			}
			s.vendor.NoRefusals(t)
		}
	})
}
