package headwaytest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/headwaytest"
)

func TestBody(t *testing.T) {
	b := &headwaytest.Body{Text: "hello"}
	p := make([]byte, 3)
	for _, want := range []string{"hel", "lo"} {
		if n, err := b.Read(p); string(p[:n]) != want || err != nil {
			t.Errorf("got %q, %v, want %q", p[:n], err, want)
		}
	}
	if n, err := b.Read(p); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v, want the end", n, err)
	}
	if b.BytesRead() != 5 || b.Closed() {
		t.Errorf("got %d read, closed %t, want 5, false", b.BytesRead(), b.Closed())
	}
	for range 2 { // closing twice is fine
		if err := b.Close(); err != nil || !b.Closed() {
			t.Errorf("got %v, closed %t, want nil, true", err, b.Closed())
		}
	}
	if n, err := b.Read(p); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("got %d, %v, want http.ErrBodyReadAfterClose", n, err)
	}
}

func TestBodyBreaksOff(t *testing.T) {
	off := errors.New("off")
	text, err := io.ReadAll(&headwaytest.Body{Text: "half", Err: off})
	if string(text) != "half" || err != off {
		t.Errorf("got %q, %v, want half, %v", text, err, off)
	}
}

func TestBodyDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &headwaytest.Body{Text: "slow", Delay: time.Minute}
		time.Sleep(time.Second)
		begin := time.Now()
		if text, err := io.ReadAll(b); string(text) != "slow" || err != nil || time.Since(begin) != time.Minute {
			t.Errorf("got %q, %v after %v, want all after a minute", text, err, time.Since(begin))
		}
	})
}

// TestBodyCloseEndsRead: as in net/http, Close does not wait for Read.
func TestBodyCloseEndsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &headwaytest.Body{Text: "slow", Delay: time.Minute}
		begin := time.Now()
		time.AfterFunc(time.Second, func() { b.Close() })
		if n, err := b.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose || time.Since(begin) != time.Second {
			t.Errorf("got %d, %v after %v, want http.ErrBodyReadAfterClose after 1 s", n, err, time.Since(begin))
		}
	})
}

// TestBodyOfAResponse: its Read ends with the request's context.
func TestBodyOfAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &headwaytest.Body{Text: "slow", Delay: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, err := script(headwaytest.Reply{Body: b}).RoundTrip(newRequest(t, ctx, url))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 2 {
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != context.DeadlineExceeded || time.Since(begin) != time.Second {
				t.Errorf("got %d, %v after %v, want the context's error after 1 s", n, err, time.Since(begin))
			}
		}
		if resp.Body.Close(); !b.Closed() {
			t.Error("Close did not reach the Body")
		}
	})
}
