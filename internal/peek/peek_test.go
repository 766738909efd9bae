package peek

import (
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

// The reader gets all of it, whatever was seen before.
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
		if got := Body(resp); len(got) != tt.seen {
			t.Errorf("%s: saw %d bytes, want %d", name, len(got), tt.seen)
		}
		text, err := io.ReadAll(resp.Body)
		if string(text) != tt.text || err != tt.err {
			t.Errorf("%s: read %d bytes and %v, want %d and %v", name, len(text), err, len(tt.text), tt.err)
		}
	}
}

// A body that does not come is not waited for, and leaves nothing behind.
func TestBodyThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		resp := &http.Response{Body: r}
		begin := time.Now()
		if got := Body(resp); got != nil || time.Since(begin) != patience {
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
		Body(resp)
		resp.Body.Close() // its reading ends, or the bubble does not
	})
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("a body") }

func TestBodyThatPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "a body" {
			t.Errorf("got %v", got)
		}
	}()
	Body(&http.Response{Body: io.NopCloser(panics{})})
}
