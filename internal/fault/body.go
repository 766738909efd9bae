package fault

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
)

// A Body watches the body of a request while it is sent.
type Body struct {
	req    http.Request // a shallow copy, with this body
	get    func() (io.ReadCloser, error)
	first  reader
	failed atomic.Bool
}

// Watch returns the request to send instead of req, and a Body that watches its body. The
// caller receives the error of a body unchanged, so that only the body's reader can
// distinguish it from an error of the connection.
//
// If the body cannot fail, the request is req itself and the Body is nil, which counts as
// not failed. That is so without a body, and with a body that is in memory and has the
// declared length. A body that can seek is not watched either: it is a file, which the
// operating system can send faster, and OfCaller recognizes its errors.
func Watch(req *http.Request) (*http.Request, *Body) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if r, ok := readerOf(req.Body); ok {
		return req, r.body // a Transport around this one watches it already
	}
	if _, ok := req.Body.(io.Seeker); ok || inMemory(req) {
		return req, nil
	}
	b := &Body{req: *req, get: req.GetBody}
	b.first.body, b.first.inner = b, req.Body
	b.req.Body = b.first.likeInner()
	if b.get != nil {
		b.req.GetBody = b.again
	}
	return &b.req, b
}

// Failed reports whether the body has returned an error, or did not have the declared
// length, before the transport gave it up.
func (b *Body) Failed() bool { return b != nil && b.failed.Load() }

// again is the GetBody of the copy.
func (b *Body) again() (io.ReadCloser, error) {
	inner, err := b.get()
	if err != nil {
		b.failed.Store(true)
		return nil, err
	}
	return (&reader{body: b, inner: inner}).likeInner(), nil
}

// The two types of io.NopCloser's results, each with the reader as its field.
var nopClosers = [2]reflect.Type{
	reflect.TypeOf(io.NopCloser(nil)),
	reflect.TypeOf(io.NopCloser(new(bytes.Reader))),
}

// inMemory reports whether the body of req has one of the types that http.NewRequest
// knows, and the declared length. It does not allocate.
func inMemory(req *http.Request) bool {
	v := reflect.ValueOf(req.Body)
	if t := v.Type(); t != nopClosers[0] && t != nopClosers[1] {
		return false
	}
	var n int
	switch r := v.Field(0).Interface().(type) {
	case *bytes.Reader:
		n = r.Len()
	case *strings.Reader:
		n = r.Len()
	case *bytes.Buffer:
		n = r.Len()
	default:
		return false
	}
	return req.ContentLength <= 0 || req.ContentLength == int64(n)
}

// A reader is a body that is watched.
type reader struct {
	body   *Body
	inner  io.ReadCloser
	read   int64
	ended  atomic.Bool // it has returned io.EOF
	closed atomic.Bool
}

// readerOf returns the reader behind a body, or nil.
func readerOf(body io.ReadCloser) (*reader, bool) {
	switch b := body.(type) {
	case *reader:
		return b, true
	case readerWriterTo:
		return b.reader, true
	}
	return nil, false
}

// Read reads from the inner body.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.inner.Read(p)
	r.note(int64(n), err)
	return n, err
}

// note records an error of the inner body. After Close, which the transport also calls
// when the connection fails, errors mean nothing.
func (r *reader) note(n int64, err error) {
	r.read += n
	length := r.body.req.ContentLength
	switch {
	case r.closed.Load():
	case err != nil && err != io.EOF,
		length > 0 && r.read > length,
		length > 0 && r.read < length && err == io.EOF:
		r.body.failed.Store(true)
	case err == io.EOF:
		r.ended.Store(true)
	}
}

// Close closes the inner body. Its error is a failure of the body if all of it was read:
// net/http then returns it as the request's error. Before that, something else has failed.
func (r *reader) Close() error {
	again := r.closed.Swap(true)
	err := r.inner.Close()
	if err != nil && !again && r.ended.Load() {
		r.body.failed.Store(true)
	}
	return err
}

// likeInner returns r, as an io.WriterTo where the inner body is one.
func (r *reader) likeInner() io.ReadCloser {
	if _, ok := r.inner.(io.WriterTo); ok {
		return readerWriterTo{r}
	}
	return r
}

type readerWriterTo struct{ *reader }

// WriteTo writes the inner body out.
func (r readerWriterTo) WriteTo(w io.Writer) (int64, error) {
	out := &writer{Writer: w}
	n, err := r.inner.(io.WriterTo).WriteTo(out)
	switch {
	case out.failed: // the writer has failed, not the body
	case err == nil:
		r.note(n, io.EOF)
	default:
		r.note(n, err)
	}
	return n, err
}

// A writer remembers whether it has failed.
type writer struct {
	io.Writer
	failed bool
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.failed = w.failed || err != nil || n < len(p)
	return n, err
}
