package headway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
)

// refuse returns what the caller of a refused request gets.
func (v *request) refuse(ctx context.Context, r *line.Refusal) (*http.Response, error) {
	refused := v.refused(ctx, r)
	if v.policy.Refusal == RefuseWithResponse {
		return refusalResponse(v.req, refused), nil
	}
	return nil, refused
}

// refused reports a refusal, and returns it as the error that callers get. It is the one place
// where refusals become public.
func (v *request) refused(ctx context.Context, r *line.Refusal) refusalError {
	if r.Reason == line.ByBreaker {
		e := &OpenError{Policy: v.policy.name, Host: v.name, RetryAfter: r.RetryAfter, Err: r.Cause}
		v.report(ctx, Event{Kind: EventOpenRefused, RetryAfter: e.RetryAfter, Err: e.Err})
		return e
	}
	e := &ThrottledError{Policy: v.policy.name, Host: v.name, Store: v.Down}
	e.Refusal = limiter.Refusal{Reason: limiter.Reason(r.Reason), RetryAfter: r.RetryAfter, AtLeast: r.AtLeast}
	if r.Deadline {
		e.Err = context.DeadlineExceeded
	}
	if c := v.Need(r.Need); c != nil {
		e.Rule, e.KeyDigest = c.Rule.Name, v.t.digests.Of(c.Key)
	} else if r.Announced {
		e.Rule = learnedName(r.Name)
	}
	v.report(ctx, Event{
		Kind: EventRefused, Rule: e.Rule, KeyDigest: e.KeyDigest, Wait: v.Waited,
		Reason: e.Reason, RetryAfter: e.RetryAfter, AtLeast: e.AtLeast,
	})
	return e
}

// refusalResponse returns the response that RefuseWithResponse stands for.
//
// The SDKs of OpenAI and Stripe read error.type, error.code and error.message, all
// strings; Stripe's retries only a 429 with the code lock_timeout by itself. Discord's
// SDK reads retry_after as a float64 and cuts it to milliseconds. Whole seconds survive
// that, and an integer field too.
func refusalResponse(req *http.Request, refused refusalError) *http.Response {
	kind, code, reason, retryAfter := "unavailable_error", "unavailable", "open", time.Duration(0)
	switch e := refused.(type) {
	case *ThrottledError:
		kind, code, reason, retryAfter = "rate_limit_error", "rate_limit", e.Reason.String(), e.RetryAfter
	case *OpenError:
		retryAfter = e.RetryAfter
	}
	h := http.Header{
		"Content-Type":    {"application/json"},
		"Headway-Refused": {reason},
	}
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		RetryAfter int64 `json:"retry_after,omitempty"`
	}
	body.Error.Type = kind
	body.Error.Code = code
	body.Error.Message = refused.Error()
	if retryAfter != limiter.Never {
		body.RetryAfter = retrySeconds(retryAfter)
		h["Retry-After"] = []string{strconv.FormatInt(body.RetryAfter, 10)}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic("headway: " + err.Error()) // strings and an integer always marshal
	}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	resp := &http.Response{
		Status:        fmt.Sprintf("%d %s", refused.StatusCode(), http.StatusText(refused.StatusCode())),
		StatusCode:    refused.StatusCode(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        h,
		Body:          io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       req,
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}

// retrySeconds rounds up, so that no caller retries early. It is at least 1: where
// the wait cannot be predicted its lower bound may be zero, and with a Retry-After of
// 0 a caller would retry immediately, for ever.
func retrySeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 1)
}
