package retry

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An Error is returned if a call ended while a retry was due, for another reason
// than the result of an attempt. The response of the last attempt, if any, has been
// closed; its status and header are kept here.
//
// errors.Is and errors.As find both Err and Cause.
type Error struct {
	// Err is what ended the call: a *headway.ThrottledError or *headway.KeyError,
	// the context's error, or that of GetBody.
	Err error
	// Cause is the error of the last attempt that was sent, or nil if it had a
	// response.
	Cause error
	// StatusCode is the status of the response to the last attempt that was sent,
	// or zero if it had none.
	StatusCode int
	// Header is the header of the same response.
	Header http.Header
	// Attempts is how many attempts were sent.
	Attempts int
	// MaxElapsed is Config.MaxElapsed.
	MaxElapsed time.Duration
}

// Error says what ended the call, after how many attempts, and how the last of
// them failed.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "retry: ended after attempt %d", e.Attempts)
	if e.MaxElapsed > 0 {
		fmt.Fprintf(&b, ", MaxElapsed %v", e.MaxElapsed)
	}
	fmt.Fprintf(&b, ": %v; before that, ", e.Err)
	if e.Cause != nil {
		fmt.Fprintf(&b, "the request failed: %v", e.Cause)
	} else {
		b.WriteString(strings.TrimSpace(fmt.Sprintf("the response was %d %s", e.StatusCode, http.StatusText(e.StatusCode)))) // 529 has no text
	}
	return b.String()
}

// Unwrap returns Err, and Cause unless it is nil.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// Timeout reports whether Err says that the caller's deadline was too short.
func (e *Error) Timeout() bool {
	t, ok := e.Err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}
