package headwaytest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// A Body is the body of a request or a response, and reports how it was used. The
// zero Body is empty. Set its fields before the first use; after that it is safe
// for concurrent use, and Close ends a Read that waits.
type Body struct {
	// Text is the content.
	Text string
	// Delay is how long the first Read waits.
	Delay time.Duration
	// Err is what Read returns at the end of Text. Nil means io.EOF; any other
	// error breaks the body off there.
	Err error

	mu      sync.Mutex // guards following fields
	pos     int
	closed  bool
	closing chan struct{} // closed by Close; made when needed, in the bubble that reads
	ready   time.Time     // when the first Read has waited for long enough; zero before it
}

// Read reads from Text.
func (b *Body) Read(p []byte) (int, error) { return b.read(context.Background(), p) }

// Close ends the body.
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.closingLocked())
	}
	return nil
}

// Closed reports whether Close has been called.
func (b *Body) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// BytesRead returns how much of Text has been read.
func (b *Body) BytesRead() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pos
}

// length is what Content-Length says: -1 where the end cannot be known.
func (b *Body) length() int64 {
	if b.Err != nil {
		return -1
	}
	return int64(len(b.Text))
}

// read is Read, but that it fails when ctx ends.
func (b *Body) read(ctx context.Context, p []byte) (int, error) {
	if err := b.wait(ctx); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.pos < len(b.Text):
		n := copy(p, b.Text[b.pos:])
		b.pos += n
		return n, nil
	case b.Err != nil:
		return 0, b.Err
	}
	return 0, io.EOF
}

// wait returns once Delay has passed since the first Read, the body is closed,
// or ctx ends, which alone is an error.
func (b *Body) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.mu.Lock()
	if b.ready.IsZero() {
		b.ready = time.Now().Add(b.Delay)
	}
	left, closing := time.Until(b.ready), b.closingLocked()
	b.mu.Unlock()
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-closing:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (b *Body) closingLocked() chan struct{} {
	if b.closing == nil {
		b.closing = make(chan struct{})
	}
	return b.closing
}
