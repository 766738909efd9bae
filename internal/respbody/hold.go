// Package respbody watches a response until its body ends, and then releases what the
// request holds. It also keeps values for a response until the response is garbage.
package respbody

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
)

// Hold calls release, once, when the request behind resp is no longer
// in flight: when its body has been read to its end, has failed, or is closed,
// when ctx, the request's context, ends, or when the body is garbage.
// It replaces resp.Body for that. If there is no body to wait for, it calls release at
// once.
//
// release is called without locks, possibly in a goroutine of the runtime or of ctx. It
// must not refer to resp or its body: a body that the context refers to is never garbage.
func Hold(ctx context.Context, resp *http.Response, release func()) {
	if resp.Body == nil || resp.Body == http.NoBody {
		release()
		return
	}
	s := &slot{release: release}
	s.forget = context.AfterFunc(ctx, s.end)
	b := &heldBody{inner: resp.Body, slot: s}
	runtime.AddCleanup(b, (*slot).free, s)
	resp.Body = b.likeInner()
}

// A slot is a place among the requests in flight. It must not lead to the body
// that holds it, which the context and the cleanup would then keep alive.
type slot struct {
	ended   atomic.Bool
	release func()
	forget  func() bool // removes the slot from the context; assigned once, before the body is returned
}

// end releases the slot, unless it was released before. The context calls it, possibly
// before forget is assigned.
func (s *slot) end() {
	if s.ended.CompareAndSwap(false, true) {
		s.release()
	}
}

func (s *slot) free() {
	s.forget()
	s.end()
}

// A heldBody is a response body that releases a slot at its end.
type heldBody struct {
	inner io.ReadCloser
	slot  *slot
}

// Read reads from the inner body. Any error is the body's end, and so is a panic.
func (b *heldBody) Read(p []byte) (n int, err error) {
	over := true
	defer func() {
		if over {
			b.slot.free()
		}
	}()
	n, err = b.inner.Read(p)
	over = err != nil
	return n, err
}

// Close closes the inner body and releases the slot, even after an error.
func (b *heldBody) Close() error {
	defer b.slot.free()
	return b.inner.Close()
}

type closeWriter interface{ CloseWrite() error }

// likeInner returns b with the further methods that the inner body has. A connection that
// has switched protocols is an io.Writer. If it can be closed for writing only, it must
// have that method, because httputil.ReverseProxy otherwise closes both directions.
func (b *heldBody) likeInner() io.ReadCloser {
	w, isWriter := b.inner.(io.Writer)
	cw, isCloseWriter := b.inner.(closeWriter)
	_, isWriterTo := b.inner.(io.WriterTo)
	to := heldWriterTo{b}
	switch {
	case isWriter && isCloseWriter && isWriterTo:
		return struct {
			*heldBody
			io.Writer
			closeWriter
			io.WriterTo
		}{b, w, cw, to}
	case isWriter && isCloseWriter:
		return struct {
			*heldBody
			io.Writer
			closeWriter
		}{b, w, cw}
	case isWriter && isWriterTo:
		return struct {
			*heldBody
			io.Writer
			io.WriterTo
		}{b, w, to}
	case isWriter:
		return struct {
			*heldBody
			io.Writer
		}{b, w}
	case isWriterTo:
		return struct {
			*heldBody
			io.WriterTo
		}{b, to}
	}
	return b
}

type heldWriterTo struct{ body *heldBody }

// WriteTo writes the inner body to a writer. Without an error, that was all of it. An error
// may be the writer's, with more of the body to come, so that the slot is then held until
// Close.
func (t heldWriterTo) WriteTo(w io.Writer) (n int64, err error) {
	over := true
	defer func() {
		if over {
			t.body.slot.free()
		}
	}()
	n, err = t.body.inner.(io.WriterTo).WriteTo(w)
	over = err == nil
	return n, err
}
