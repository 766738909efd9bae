package headway

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

func TestRefusalResponse(t *testing.T) {
	for _, tc := range []struct {
		name    string
		refusal limiter.Refusal
		seconds string // of Retry-After
	}{
		{"whole seconds", limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: 3 * time.Second}, "3"},
		{"rounded up", limiter.Refusal{Reason: limiter.ReasonPause, RetryAfter: 3*time.Second + 1}, "4"},
		{"the shortest", limiter.Refusal{Reason: limiter.ReasonLineFull, RetryAfter: 1}, "1"},
		{"none known", limiter.Refusal{Reason: limiter.ReasonInFlight, AtLeast: true}, "1"}, // or one would spin
		{"never", limiter.Refusal{Reason: limiter.ReasonImpossible, RetryAfter: limiter.Never}, ""},
		{"almost never", limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: math.MaxInt64 - 1}, "9223372037"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := &http.Request{Method: "POST"}
			e := &ThrottledError{Refusal: tc.refusal, Policy: "p", Host: "h", Rule: "r", KeyDigest: "3f9a"}
			resp := refusalResponse(req, e)
			if resp.StatusCode != 429 || resp.Status != "429 Too Many Requests" || resp.Proto != "HTTP/1.1" ||
				!resp.ProtoAtLeast(1, 1) || resp.Request != req {
				t.Errorf("got %+v", resp)
			}
			if got := resp.Header.Get("Retry-After"); got != tc.seconds {
				t.Errorf("Retry-After: got %q, want %q", got, tc.seconds)
			}
			if got := resp.Header.Get("Headway-Refused"); got != tc.refusal.Reason.String() {
				t.Errorf("Headway-Refused: got %q, want %v", got, tc.refusal.Reason)
			}
			if got := resp.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type: got %q", got)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Errorf("Close: got %v", err)
			}
			if n := len(text); resp.ContentLength != int64(n) || resp.Header.Get("Content-Length") != strconv.Itoa(n) {
				t.Errorf("got a length of %d and %q, want %d", resp.ContentLength, resp.Header.Get("Content-Length"), n)
			}

			// As the SDKs of OpenAI and Stripe read it.
			var sdk struct {
				Error struct{ Type, Code, Message string }
			}
			if err := json.Unmarshal(text, &sdk); err != nil {
				t.Fatal(err)
			}
			if sdk.Error.Type != "rate_limit_error" || sdk.Error.Code != "rate_limit" || sdk.Error.Message != e.Error() {
				t.Errorf("got %+v", sdk)
			}
			// As discordgo does: a float64 of seconds, cut to milliseconds.
			var discord struct {
				RetryAfter float64 `json:"retry_after"`
			}
			if err := json.Unmarshal(text, &discord); err != nil {
				t.Fatal(err)
			}
			whole, frac := math.Modf(discord.RetryAfter)
			if frac != 0 || tc.seconds != "" && strconv.FormatFloat(whole, 'f', -1, 64) != tc.seconds {
				t.Errorf("retry_after: got %v, want %s", discord.RetryAfter, tc.seconds)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(text, &fields); err != nil {
				t.Fatal(err)
			}
			if _, ok := fields["retry_after"]; ok != (tc.seconds != "") {
				t.Errorf("got %s, want retry_after in it: %v", text, !ok)
			}
		})
	}
}

// A response to HEAD has the headers of the body and no body.
func TestRefusalResponseToHead(t *testing.T) {
	resp := refusalResponse(&http.Request{Method: "HEAD"}, &ThrottledError{Policy: "p", Host: "h"})
	if resp.Body != http.NoBody || resp.ContentLength <= 0 {
		t.Errorf("got body %v, length %d, want none, and what it would be", resp.Body, resp.ContentLength)
	}
}
