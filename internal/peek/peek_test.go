package peek

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The reader receives the whole body, whatever was peeked.
func TestBody(t *testing.T) {
	broken := errors.New("cut off")
	for name, tt := range map[string]struct {
		body io.Reader
		seen int
		text string
		err  error
	}{
		"short":   {strings.NewReader("abc"), 3, "abc", nil},
		"empty":   {strings.NewReader(""), 0, "", nil},
		"long":    {strings.NewReader(strings.Repeat("x", 1<<20)), most, strings.Repeat("x", 1<<20), nil},
		"by byte": {iotest.OneByteReader(strings.NewReader("abc")), 3, "abc", nil},
		"broken":  {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 3, "abc", broken},
	} {
		resp := &http.Response{Body: io.NopCloser(tt.body)}
		if got := Body(context.Background(), resp); len(got) != tt.seen {
			t.Errorf("%s: saw %d bytes, want %d", name, len(got), tt.seen)
		}
		text, err := io.ReadAll(resp.Body)
		if string(text) != tt.text || err != tt.err {
			t.Errorf("%s: read %d bytes and %v, want %d and %v", name, len(text), err, len(tt.text), tt.err)
		}
	}
}

// A body that does not arrive is not waited for, and leaves no goroutine behind.
func TestBodyThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		resp := &http.Response{Body: r}
		begin := time.Now()
		if got := Body(context.Background(), resp); got != nil || time.Since(begin) != patience {
			t.Errorf("got %q after %v", got, time.Since(begin))
		}
		go func() {
			w.Write([]byte("late"))
			w.Close()
		}()
		if text, err := io.ReadAll(resp.Body); string(text) != "late" || err != nil {
			t.Errorf("read %q, %v", text, err)
		}
		r, _ = io.Pipe()
		resp = &http.Response{Body: r}
		Body(context.Background(), resp)
		resp.Body.Close() // its reading ends, or the bubble does not
	})
}

// Of a slow body, the bytes that have arrived after a second, or at the end of the
// request, are returned; its reader receives the rest as it arrives.
func TestBodyThatGoesOn(t *testing.T) {
	for _, within := range []time.Duration{patience, patience / 4} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			r, w := io.Pipe()
			resp := &http.Response{Body: r}
			go func() {
				w.Write([]byte("ab"))
				time.Sleep(2 * patience)
				w.Write([]byte("cd"))
				time.Sleep(2 * patience)
				w.Write([]byte("ef"))
				w.Close()
			}()
			begin := time.Now()
			if got := Body(ctx, resp); string(got) != "ab" || time.Since(begin) != within {
				t.Errorf("got %q after %v, want ab after %v", got, time.Since(begin), within)
			}
			b := make([]byte, 8)
			if n, err := resp.Body.Read(b); string(b[:n]) != "abcd" || err != nil || time.Since(begin) != 2*patience {
				t.Errorf("read %q, %v after %v, want abcd after two seconds", b[:n], err, time.Since(begin))
			}
			if text, err := io.ReadAll(resp.Body); string(text) != "ef" || err != nil {
				t.Errorf("read %q, %v, want ef", text, err)
			}
		})
	}
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("a body") }

func TestBodyThatPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "a body" {
			t.Errorf("got %v", got)
		}
	}()
	Body(context.Background(), &http.Response{Body: io.NopCloser(panics{})})
}
