package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/retry"
)

// Reports of faults in other retrying clients, reproduced here.

// hashicorp/go-retryablehttp 94, kubernetes/kubernetes 113933, VictoriaMetrics 11508: a
// server responds before it has read the body, and the transport goes on reading it after
// RoundTrip has returned, while the next attempt rewinds the same reader. Here each
// attempt reads a body of its own, whole, and each is closed once, by the base.
func TestReportBodyIsStillRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "hello, hello, hello"
		var mu sync.Mutex // guards got
		var got []string
		var readers sync.WaitGroup
		next, err := headway.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
			readers.Go(func() {
				defer req.Body.Close()
				time.Sleep(10 * time.Millisecond) // the next attempt is sent meanwhile
				b, err := io.ReadAll(iotest.OneByteReader(req.Body))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got = append(got, string(b))
				mu.Unlock()
			})
			return response(503, nil), nil
		}), headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}}}})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := retry.New(next, retry.Config{MaxRetries: 4, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		rt.SetJitter(1)
		resp, err := rt.RoundTrip(request(t.Context(), "PUT", text))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		readers.Wait()
		if len(got) != 5 {
			t.Errorf("%d attempts, want 5", len(got))
		}
		for i, b := range got {
			if b != text {
				t.Errorf("attempt %d has sent %q, want %q", i, b, text)
			}
		}
	})
}

// openclaw/clawscan 58: a Retry-After that overflows leads to six attempts at once.
// Here the call ends immediately with the response that it has, because no retry could
// be sent in time.
func TestReportRetryAfterWraps(t *testing.T) {
	for _, seconds := range []string{"9223372036", "9223372037", "18446744074", "99999999999999999999"} {
		t.Run(seconds, func(t *testing.T) {
			playListening(t, headway.Policy{}, retry.Config{MaxRetries: 6}, func(s *scene) {
				s.script = once(429, "Retry-After", seconds)
				ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
				defer cancel()
				resp, err := s.send(request(ctx, "GET", ""))
				if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != seconds || time.Since(s.begin) != 0 {
					s.Errorf("got %v, %v after %v, want the 429 at once", resp, err, time.Since(s.begin))
				}
				s.wantSends("0@0s")
			})
		})
	}
}

// homeylab/tdarr-exporter 105 and steipete/eightctl 97: a call that is cancelled during
// its backoff sleeps on, sends once more, or keeps the previous response open.
// alexfalkowski/go-service 2584: a call that is cancelled before it begins keeps its
// body open. Here the call ends immediately, and everything is closed.
func TestReportCancelsInABackoff(t *testing.T) {
	for n := range 4 { // attempts before it
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			play(t, headway.Policy{}, retry.Config{MaxRetries: 5, MinBackoff: time.Second, MaxBackoff: time.Second}, func(s *scene) {
				var bodies []*body
				s.script = func(int, *http.Request) (*http.Response, error) {
					b := newBody("down")
					bodies = append(bodies, b)
					return response(503, b), nil
				}
				ctx, cancel := context.WithCancel(s.Context())
				defer cancel()
				sent := newBody("hello")
				var got error
				var after time.Duration
				if n == 0 {
					cancel()
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					req := request(ctx, "PUT", "")
					req.Body, req.GetBody = sent, func() (io.ReadCloser, error) { return newBody("hello"), nil }
					var resp *http.Response
					if resp, got = s.RoundTrip(req); resp != nil {
						resp.Body.Close()
					}
					after = time.Since(s.begin)
				}()
				if n > 0 {
					time.Sleep(time.Duration(n)*time.Second - time.Millisecond)
					synctest.Wait()
					cancel()
				}
				<-done
				want := time.Duration(0)
				if n > 0 {
					want = time.Duration(n)*time.Second - time.Millisecond
				}
				if !errors.Is(got, context.Canceled) || after != want || s.sends() != n || sent.closed.Load() != 1 {
					s.Errorf("got %v after %v and %d sends, its body closed %d times; want it canceled after %v and %d, and once",
						got, after, s.sends(), sent.closed.Load(), want, n)
				}
				for i, b := range bodies {
					if b.closed.Load() == 0 {
						s.Errorf("the response of attempt %d is open", i)
					}
				}
			})
		})
	}
}
