package peek

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func zlibbed(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func deflated(text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// A coded body is peeked decoded, and its reader receives it unchanged.
func TestCodings(t *testing.T) {
	const text = `{"error":{"code":"lock_timeout"}}`
	bomb := strings.Repeat(" ", 4<<20)
	for name, tt := range map[string]struct {
		coding []string
		body   string
		seen   string
	}{
		"none":             {nil, text, text},
		"gzip":             {[]string{"gzip"}, gzipped(text), text},
		"gzip, spelled":    {[]string{" GZip "}, gzipped(text), text},
		"x-gzip":           {[]string{"x-gzip"}, gzipped(text), text},
		"zlib":             {[]string{"deflate"}, zlibbed(text), text},
		"raw deflate":      {[]string{"deflate"}, deflated(text), text},
		"not gzip at all":  {[]string{"gzip"}, text, text},
		"not deflated":     {[]string{"deflate"}, text, text},
		"identity":         {[]string{"identity"}, text, text},
		"unknown":          {[]string{"br"}, "\x1b\x00", "\x1b\x00"},
		"two":              {[]string{"gzip", "gzip"}, gzipped(text), gzipped(text)},
		"cut off":          {[]string{"gzip"}, gzipped(text)[:len(gzipped(text))-8], text},
		"a bomb":           {[]string{"gzip"}, gzipped(bomb), bomb[:most]},
		"a bomb in a bomb": {[]string{"gzip"}, gzipped(gzipped(bomb)), gzipped(bomb)[:most]},
		"empty":            {[]string{"gzip"}, "", ""},
	} {
		h := http.Header{}
		if tt.coding != nil {
			h["Content-Encoding"] = tt.coding
		}
		resp := &http.Response{Header: h, Body: io.NopCloser(strings.NewReader(tt.body))}
		if got := string(Body(context.Background(), resp)); got != tt.seen {
			t.Errorf("%s: saw %d bytes %.40q, want %d %.40q", name, len(got), got, len(tt.seen), tt.seen)
		}
		if all, err := io.ReadAll(resp.Body); string(all) != tt.body || err != nil {
			t.Errorf("%s: read %d bytes and %v, want all %d", name, len(all), err, len(tt.body))
		}
	}
}

// However much a body grows by decoding, the result is bounded.
func TestCodingsAreBounded(t *testing.T) {
	bomb := gzipped(strings.Repeat("x", 4<<20))
	resp := &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}}
	bytes := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			resp.Body = io.NopCloser(strings.NewReader(bomb))
			Body(context.Background(), resp)
		}
	}).AllocedBytesPerOp()
	if bytes > 256<<10 {
		t.Errorf("%d bytes for a look at a bomb", bytes)
	}
}
