package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/headway-go/headway/store"
)

// A shaky is a store that can be down.
type shaky struct {
	store.Memory
	away atomic.Bool
}

// Do implements store.Store.
func (s *shaky) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if s.away.Load() {
		return nil, errors.New("no route to the store")
	}
	return s.Memory.Do(ctx, ops)
}
