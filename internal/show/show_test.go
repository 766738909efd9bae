package show_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headway-go/headway/internal/show"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10196880596: "10.197s", 0: "0s", 999: "999ns", 1499: "1µs", 9999999: "10ms", 5*time.Millisecond + 1400: "5.001ms",
		12*time.Millisecond + 600000: "13ms", time.Minute: "1m0s",
	} {
		if got := show.Duration(d).String(); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

// The text has no query, no fragment and no user information. The last cases are from
// reports: smallstep/certificates 1522 (a password that is not a URL), and
// cyanheads/mcp-ts-core 190 and alphaonedev/ai-memory-mcp 3674 (secrets in queries).
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"connection reset":  "connection reset",
		"what? no: a@b":     "what? no: a@b",
		"really? yes":       "really? yes",
		"git@github.com:/x": "git@github.com:/x",
		`Get "https://h.test/p?token=s3cret": EOF`:                      `Get "https://h.test/p": EOF`,
		`Get "https://u:s3cret@h.test:8443/p/@x?a=s3cret#f": EOF`:       `Get "https://h.test:8443/p/@x": EOF`,
		`Get https://h.test/p?token=s3cret: EOF`:                        `Get https://h.test/p: EOF`,
		`(https://h.test?s3cret), (HTTPS://h.test/#s3cret)`:             `(https://h.test), (HTTPS://h.test/)`,
		`a "https://h.test/?q=a b s3cret" b`:                            `a "https://h.test/" b`,
		`a "https://h.test/?q=\"s3cret\"&x=s3cret" b`:                   `a "https://h.test/" b`,
		"redis://user:s3cret@h:6379/0: refused":                         "redis://h:6379/0: refused",
		"redis://:s3cret@h:6379":                                        "redis://h:6379",
		"redis://user:s3/cret@h:6379":                                   "redis://h:6379",
		"redis://user:s3?cret@h:6379":                                   "redis://h:6379",
		"redis://user:s3#cret@h:6379/1?x=s3cret":                        "redis://h:6379/1",
		"redis://user:s3@cret@h:6379":                                   "redis://h:6379",
		"dial tcp: address user:s3cret@h:6379: too many":                "dial tcp: address h:6379: too many",
		"parse \"/v1/x?token=s3cret\": bad":                             "parse \"/v1/x\": bad",
		"GET /v1/x?token=s3cret HTTP/1.1":                               "GET /v1/x HTTP/1.1",
		"https://proxy/https://u:s3cret@h/x":                            "https://proxy/https://h/x",
		"https://registry.test/@scope/pkg":                              "https://registry.test/@scope/pkg",
		"http://[::1]:80/@x":                                            "http://[::1]:80/@x",
		`{"url":"https://h.test/?s3cret","pw":"x"}`:                     `{"url":"https://h.test/`,
		"source postgresql://ca:q^G$s3cret@h.test/db?sslmode=s3cret: e": "source postgresql://h.test/db: e",
		"Fetch failed for https://h.test/search?api-key=s3cret. Status": "Fetch failed for https://h.test/search Status",
		"postgres://h/db?password=s3cret":                               "postgres://h/db",
		"host=h user=u password=s3cret dbname=d":                        "host=h user=u password=… dbname=d",
		"host=h password='s3 s3cret' dbname=d":                          "host=h password=… dbname=d",
		"server=h;Pwd=s3cret;database=d":                                "server=h;Pwd=…;database=d",
		`response: "access_token":"s3\"s3cret", "n":1`:                  `response: "access_token":…, "n":1`,
		"sent Authorization: Bearer s3cret, got 401":                    "sent Authorization: Bearer …, got 401",
		"api_key=s3cret: refused":                                       "api_key=… refused",
		"https%3A%2F%2Fh.test%2F%3Ftoken%3Ds3cret":                      "https%3A%2F%2Fh.test%2F%3Ftoken%3D…",
		"https://h.test/x;jsessionid=s3cret":                            "https://h.test/x;jsessionid=…",
		"invalid token: unexpected EOF":                                 "invalid token: unexpected EOF",
		"token bucket = empty; no secret here":                          "token bucket = empty; no secret here",
	} {
		got := show.Text(in)
		if strings.HasPrefix(in, "{") {
			if strings.Contains(got, "s3cret") {
				t.Errorf("%s: got %s", in, got)
			}
		} else if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
		if show.Text(got) != got {
			t.Errorf("%s: not the same the second time: %s", got, show.Text(got))
		}
	}
	long := show.Text(strings.Repeat("ä", 999))
	if len(long) > show.MostText || len(long) < show.MostText-4 || !utf8.ValidString(long) {
		t.Errorf("got %d bytes: %q", len(long), long)
	}
	if got := show.Text(strings.Repeat("a", 480) + " redis://user:" + strings.Repeat("s3cret", 100) + "@h"); strings.Contains(got, "s3cret") {
		t.Errorf("got %s", got)
	}
}

type status struct{ Code int }

func (s status) Error() string { return fmt.Sprint("status ", s.Code) }

type leaky struct{ URL, Body string }

func (l *leaky) Error() string { return "the request failed" }

type wrapping struct {
	url string
	err error
}

func (w wrapping) Error() string { return w.url + ": " + w.err.Error() }
func (w wrapping) Unwrap() error { return w.err }

var errDown = errors.New("down")

// An Error keeps errors whose types hold no secrets, and nothing else.
func TestError(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	u := func(err error) error { return &url.Error{Op: "Get", URL: "https://h.test/?token=s3cret", Err: err} }
	hidden := &leaky{"https://h.test/?token=s3cret", "s3cret"}
	for name, err := range map[string]error{
		"url":     u(reset),
		"nested":  fmt.Errorf("a: %w", u(fmt.Errorf("b: %w", u(reset)))),
		"joined":  errors.Join(errDown, u(reset), hidden),
		"custom":  wrapping{"https://u:s3cret@h.test/", reset},
		"twofold": fmt.Errorf("%w and %w", u(errDown), u(reset)),
	} {
		kept := show.Error(err)
		var op *net.OpError
		var no syscall.Errno
		var ue *url.Error
		var le *leaky
		var we wrapping
		if !errors.As(kept, &op) || op != reset || !errors.As(kept, &no) || no != syscall.ECONNRESET || !errors.Is(kept, syscall.ECONNRESET) {
			t.Errorf("%s: the types of the network are gone", name)
		}
		if errors.As(kept, &ue) || errors.As(kept, &le) || errors.As(kept, &we) {
			t.Errorf("%s: gives away %v %v %v", name, ue, le, we)
		}
		if errors.Is(err, errDown) != errors.Is(kept, errDown) || errors.Is(err, hidden) != errors.Is(kept, hidden) {
			t.Errorf("%s: errors.Is differs", name)
		}
		js, _ := json.Marshal(kept)
		for _, s := range []string{kept.Error(), fmt.Sprintf("%v|%+v|%#v|%q|%s", kept, kept, kept, kept, kept), string(js)} {
			if strings.Contains(s, "s3cret") {
				t.Errorf("%s: shows %s", name, s)
			}
		}
	}
	for err, timeout := range map[error]bool{u(os.ErrDeadlineExceeded): true, u(reset): false} {
		var n net.Error
		if !errors.As(show.Error(err), &n) || n.Timeout() != timeout {
			t.Errorf("%v: net.Error is gone, or its Timeout is not %v", err, timeout)
		}
	}
	var n net.Error
	if errors.As(show.Error(errDown), &n) {
		t.Error("an error that is no net.Error has become one")
	}
	var s status
	if kept := show.Error(fmt.Errorf("x: %w", status{503})); !errors.As(kept, &s) || s.Code != 503 {
		t.Error("a status is gone")
	}
	for _, is := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if !errors.Is(show.Error(u(is)), is) {
			t.Errorf("%v is gone", is)
		}
	}
	if show.Error(nil) != nil {
		t.Error("nil is an error")
	}
	if kept := show.Error(u(reset)); show.Error(kept) != kept {
		t.Error("kept twice")
	}
	if got := show.Error((*leakyPanic)(nil)).Error(); got != "*show_test.leakyPanic" {
		t.Errorf("got %q", got)
	}
	deep := error(errDown)
	for range 1000 {
		deep = fmt.Errorf("%w", deep)
	}
	show.Error(deep)
}

type leakyPanic struct{ text string }

func (l *leakyPanic) Error() string { return l.text }

func FuzzText(f *testing.F) {
	f.Add(`Get "https://u:p@h/?q": EOF`)
	f.Fuzz(func(t *testing.T, s string) {
		got := show.Text(s)
		if len(got) > show.MostText {
			t.Errorf("%d bytes", len(got))
		}
		show.Text("https://user:" + s + "@h/?" + s)
	})
}
