package headwaytest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Reply is what a Vendor does about one arrival. Script may change it.
type Reply struct {
	// Status is the status code.
	Status int
	// Header is the header of the response; never nil.
	Header http.Header
	// Body is the body of the response: a new one for each Reply. Nil means none.
	Body *Body
	// After is how long the service takes, from the arrival, before anything else
	// in this Reply happens.
	After time.Duration

	// Err replaces the response: RoundTrip returns it. A real server cuts the
	// connection.
	Err error
	// Hang withholds the response: RoundTrip returns the error of the request's
	// context when that ends. A real server waits until the client has gone.
	Hang bool
	// Panic, if not nil, is the value with which RoundTrip, or the handler of a
	// real server, panics.
	Panic any
}

// happen does what comes before the response.
func (r *Reply) happen(ctx context.Context) error {
	if err := sleep(ctx, r.After); err != nil {
		return err
	}
	if r.Panic != nil {
		panic(r.Panic)
	}
	if r.Hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

// response returns the Reply as the response to req.
func (r *Reply) response(req *http.Request) *http.Response {
	resp := &http.Response{
		Status:     strings.TrimSpace(strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)), // 529 has no text
		StatusCode: r.Status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     r.Header,
		Body:       http.NoBody,
		Request:    req,
	}
	if r.Body != nil {
		resp.ContentLength = r.Body.length()
		resp.Body = &sentBody{r.Body, req.Context()}
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}

// write sends the Reply as the response to req. An error means that it broke off.
func (r *Reply) write(w http.ResponseWriter, req *http.Request) error {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	if r.Body == nil {
		w.WriteHeader(r.Status)
		return nil
	}
	defer r.Body.Close()
	if n := r.Body.length(); n >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	}
	w.WriteHeader(r.Status)
	if req.Method == http.MethodHead {
		return nil
	}
	flush := http.NewResponseController(w).Flush
	if err := flush(); err != nil {
		return err
	}
	_, err := io.Copy(w, &sentBody{r.Body, req.Context()})
	return errors.Join(err, flush()) // what came before the break is sent
}

// A sentBody is a Body on its way: reading it fails when the request's context
// ends.
type sentBody struct {
	*Body
	ctx context.Context
}

func (b *sentBody) Read(p []byte) (int, error) { return b.read(b.ctx, p) }

// sleep lets d pass. Where ctx has ended, or ends first, it returns why.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
