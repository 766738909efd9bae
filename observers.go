package headway

import "context"

// MultiObserver returns an Observer that passes each event to every observer of the
// list in turn, and each Transport to the TransportObservers among them. It skips nil
// observers, and returns nil if no other is left. When one panics, those after it do
// not receive that event.
func MultiObserver(list ...Observer) Observer {
	var all joined
	for _, o := range list {
		if o != nil {
			all = append(all, o)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type joined []Observer

func (j joined) Observe(ctx context.Context, e Event) {
	for _, o := range j {
		o.Observe(ctx, e)
	}
}

func (j joined) Watch(t *Transport) {
	for _, o := range j {
		if w, ok := o.(TransportObserver); ok {
			w.Watch(t)
		}
	}
}
