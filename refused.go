package headway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/headway-go/headway/limiter"
)

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
