package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
)

// TestWaits checks both runs without a network: each tenant's longest wait, and that no
// tenant starves.
func TestWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		policy         headway.Policy
		greedy, others time.Duration // the longest wait
	}{
		"account alone": {policy(), time.Second, 2*time.Second - headStart},
		"with the rule": {policy(tenantRule), 5 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := newVendor()
				r := measure(tt.policy, vendor, "https://api.example.com")
				if err := r.check(); err != nil {
					t.Error(err)
				}
				if got := r.longest[greedy.name]; got != tt.greedy {
					t.Errorf("the greedy tenant waited for %v, want %v", got, tt.greedy)
				}
				if got := r.longestOfOthers(); got != tt.others {
					t.Errorf("another tenant waited for %v, want %v", got, tt.others)
				}
				for _, tenant := range tenants {
					started := 0
					for _, n := range r.starts[tenant.name] {
						started += n
					}
					if want := tenant.burst * tenant.times; started != want {
						t.Errorf("%s: got %d starts, want %d", tenant.name, started, want)
					}
				}
				vendor.NoRefusals(t)
			})
		})
	}
}
