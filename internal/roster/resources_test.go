package roster

import "testing"

// learner returns a roster with a host under a plan without rules.
func learner(most int) (*Roster, *Host) {
	last := 0
	p := NewPlan(Plan{Name: "p"}, nil, &last)
	t := &Roster{Max: most}
	h, _ := t.Host(p, "h")
	return t, h
}

// What a resource's routes take is bounded, and the oldest make way.
func TestRoutesOfAResourceAreBounded(t *testing.T) {
	tab, h := learner(10)
	for route := uint64(1); route <= 3*mostResourceRoutes; route++ {
		if r := tab.Learn(h, nil, nil, route, &Resource{ID: 5, Name: "a"}); r == nil || r.Name != "a" {
			t.Fatalf("route %d: %+v", route, r)
		}
	}
	ks := h.keys.Load()
	if n, m := len(ks.byRoute), len(ks.byID[keyID{identity: 5}].resource.routes); n != mostResourceRoutes || m != n {
		t.Errorf("%d routes are found, %d are listed, want %d", n, m, mostResourceRoutes)
	}
	if h.ResourceOf(2*mostResourceRoutes) != nil || h.ResourceOf(3*mostResourceRoutes) == nil {
		t.Error("the oldest did not make way")
	}
}

// A route has one resource, the latest, and a resource that is forgotten leaves none of its
// routes.
func TestRoutesFollowTheirResource(t *testing.T) {
	tab, h := learner(10)
	tab.Learn(h, nil, nil, 1, &Resource{ID: 5, Dialect: "d"})
	tab.Learn(h, nil, nil, 2, &Resource{ID: 5, Dialect: "d"})
	tab.Learn(h, nil, nil, 2, &Resource{ID: 6, Dialect: "e"})
	if h.ResourceOf(1).ID != 5 || h.ResourceOf(2).ID != 6 || h.Names() != "e" || !h.hosts.Names() {
		t.Errorf("got %v, %v, dialect %q", h.ResourceOf(1), h.ResourceOf(2), h.Names())
	}
	ks := h.keys.Load()
	for _, id := range []uint64{5, 6} {
		if !h.forgetKey(ks.byID[keyID{identity: id}]) {
			t.Errorf("%d is in use", id)
		}
	}
	if h.ResourceOf(1) != nil || h.ResourceOf(2) != nil || len(ks.byRoute) != 0 {
		t.Errorf("routes are left: %v", ks.byRoute)
	}
}

// A resource takes a place in the ring, as a key does; where there is none, nothing is learned.
func TestResourcesTakeRoom(t *testing.T) {
	tab, h := learner(3)
	for id := uint64(1); id <= 2; id++ {
		if tab.Learn(h, nil, nil, id, &Resource{ID: id}) == nil {
			t.Fatalf("there is room for %d", id)
		}
		h.Line.OpenAudience(id, "", "", nil)
	}
	if len(tab.ring) != 3 {
		t.Errorf("the ring has %d entries, want 3", len(tab.ring))
	}
	if r := tab.Learn(h, nil, nil, 9, &Resource{ID: 9}); r == nil || len(tab.ring) != 3 {
		t.Errorf("got %v, and %d entries: another could make room", r, len(tab.ring))
	}
	tab, h = learner(1)
	if r := tab.Learn(h, nil, nil, 1, &Resource{ID: 1}); r != nil || h.ResourceOf(1) != nil {
		t.Errorf("got %v without room", r)
	}
}
