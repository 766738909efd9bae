package retry_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/retry"
)

// Whether a request is retried after an error: never, always, or only if repeating it
// has no further effect.
const (
	never   = "never"
	always  = "always"
	perhaps = "perhaps"
)

// A fault is one way in which a request fails over real connections.
type fault struct {
	text    string // what the error says
	again   string
	ignored bool // by the breaker: it was the caller's fault
	base    func(t *testing.T) http.RoundTripper
	url     func(t *testing.T) string
	// change prepares the request; nil: nothing to prepare. first is called before,
	// with a client over the same base.
	change func(*http.Request)
	first  func(t *testing.T, base http.RoundTripper, url string)
}

var errBody = errors.New("the body has failed")

// Every error of net/http that can be provoked, with its meaning. Package
// internal/fault knows some errors by net/http's texts, so that this test must fail
// when another version of Go changes one.
//
// Public reports: aws/aws-sdk-go-v2 2083 and zoharbabin/web-researcher-mcp 674
// (which retried a name that does not exist).
func TestErrorsOfNetHTTP(t *testing.T) {
	for name, f := range map[string]fault{
		// The request cannot be sent.
		"no header map":       {text: "http: nil Request.Header", again: never, ignored: true, change: func(r *http.Request) { r.Header = nil }},
		"a header's name":     {text: "invalid header field name", again: never, ignored: true, change: header("a b", "x")},
		"a header's value":    {text: "invalid header field value", again: never, ignored: true, change: header("Authorization", "Bearer x\n")},
		"a trailer's name":    {text: "invalid trailer field name", again: never, ignored: true, change: func(r *http.Request) { r.Trailer = http.Header{"a b": {"x"}} }},
		"a trailer's key":     {text: "invalid Trailer key", again: never, ignored: true, change: withBody(stream("hello"), -1, func(r *http.Request) { r.Trailer = http.Header{"Content-Length": {"1"}} })},
		"a method":            {text: "invalid method", again: never, ignored: true, change: func(r *http.Request) { r.Method = "GE T" }},
		"a scheme":            {text: "unsupported protocol scheme", again: never, ignored: true, change: func(r *http.Request) { r.URL.Scheme = "htps" }},
		"a port":              {text: "invalid port", again: never, ignored: true, change: func(r *http.Request) { r.URL.Host = "127.0.0.1:99999" }},
		"no host":             {text: "no Host in request URL", again: never, ignored: true, change: func(r *http.Request) { r.URL.Host = "" }},
		"a host for a proxy":  {text: "invalid Host header", again: never, ignored: true, base: viaProxy(okServer), change: func(r *http.Request) { r.Host = "a b" }},
		"a control character": {text: "can't write control character", again: never, ignored: true, change: func(r *http.Request) { r.URL.Opaque = "/\x01" }},
		"a length alone": {text: "http: Request.ContentLength=5 with nil Body", again: never, ignored: true, change: func(r *http.Request) {
			r.Body, r.GetBody, r.ContentLength = nil, nil, 5
		}},
		"Connection over HTTP/2": {text: "http2: invalid Connection request header", again: never, ignored: true, base: h2c, url: http2Server, change: header("Connection", "upgrade-insecure")},
		"Upgrade over HTTP/2":    {text: "http2: invalid Upgrade request header", again: never, ignored: true, base: h2c, url: http2Server, change: header("Upgrade", "x")},
		"Transfer-Encoding over HTTP/2": {text: "http2: invalid Transfer-Encoding request header", again: never, ignored: true, base: h2c, url: http2Server,
			change: header("Transfer-Encoding", "x")},
		"too large a header over HTTP/2": {text: "http2: request header list larger than peer's advertised limit", again: never, ignored: true, base: h2c, url: http2Server,
			change: header("Large", strings.Repeat("x", 100_000)), first: get},

		// The body is the caller's.
		"a body that fails":            {text: errBody.Error(), again: never, ignored: true, change: withBody(failing(""), -1)},
		"a body that fails later":      {text: errBody.Error(), again: never, ignored: true, change: withBody(failing(strings.Repeat("x", 100_000)), -1)},
		"a body that fails, of length": {text: errBody.Error(), again: never, ignored: true, change: withBody(failing("hel"), 5)},
		"a body that fails, HTTP/2":    {text: errBody.Error(), again: never, ignored: true, base: h2c, url: http2Server, change: withBody(failing("hel"), -1)},
		"a body that cannot come":      {text: errBody.Error(), again: never, ignored: true, change: withBody(func() io.ReadCloser { return iotestTimeout{} }, -1)},
		"a directory":                  {text: "is a directory", again: never, ignored: true, change: withBody(directory, -1)},
		"a closed file":                {text: "file already closed", again: never, ignored: true, change: withBody(closedFile, -1)},
		"a closed body of a server's":  {text: "invalid Read on closed Body", again: never, ignored: true, change: withBody(func() io.ReadCloser { return io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose)) }, -1)},
		"a body in memory that is short": {text: "http: ContentLength=9 with Body length 5", again: never, ignored: true,
			change: withBody(func() io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) }, 9)},
		"a body in memory that is long": {text: "http: ContentLength=3 with Body length 5", again: never, ignored: true, url: raw(silent),
			change: withBody(func() io.ReadCloser { return io.NopCloser(bytes.NewReader([]byte("hello"))) }, 3)},
		"a body that does not close": {text: errBody.Error(), again: never, ignored: true, url: raw(silent), change: withBody(unclosable, -1)},
		"a body that is short":       {text: "http: ContentLength=9 with Body length 5", again: never, ignored: true, change: withBody(stream("hello"), 9)},
		"a body that is long":        {text: "http: ContentLength=3 with Body length 5", again: never, ignored: true, url: raw(silent), change: withBody(stream("hello"), 3)},
		"a long body over HTTP/2":    {text: "http2: request body larger than specified content length", again: never, ignored: true, base: h2c, url: http2Server, change: withBody(stream("hello"), 3)},
		"a short body over HTTP/2":   {text: "stream error", again: never, ignored: true, base: h2c, url: http2Server, change: withBody(stream("hello"), 9)},
		"a body that does not come again": {text: errBody.Error(), again: never, ignored: true, url: raw(func(c net.Conn, n int) {
			r := bufio.NewReader(c)
			if n == 0 {
				readRequest(r)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				readRequest(r) // and closes: net/http sends it once more by itself
			}
		}), first: get, change: func(r *http.Request) {
			r.Header.Set("Idempotency-Key", "k")
			r.Body, r.ContentLength = stream("hello")(), 5
			r.GetBody = func() (io.ReadCloser, error) { return nil, errBody }
		}},
		"canceled by Request.Cancel": {text: "net/http: request canceled", again: never, ignored: true, url: raw(silent), change: func(r *http.Request) {
			closed := make(chan struct{})
			close(closed)
			r.Cancel = closed //lint:ignore SA1019 it still works
		}},

		// The name.
		"a name that does not exist": {text: "no such host", again: never, base: resolving(3), url: text("http://nosuch.test./")},
		"a name server that fails":   {text: "server misbehaving", again: always, base: resolving(2), url: text("http://nosuch.test./")},
		"a name server that is away": {text: "i/o timeout", again: always, base: resolving(-1), url: text("http://nosuch.test./")},

		// The connection.
		"refused":         {text: "connection refused", again: always, url: refusing},
		"closed at once":  {again: perhaps, url: raw(func(net.Conn, int) {})},
		"reset":           {text: "connection reset by peer", again: perhaps, url: raw(func(c net.Conn, _ int) { readRequest(bufio.NewReader(c)); c.(*net.TCPConn).SetLinger(0) })},
		"closed unread":   {text: "EOF", again: perhaps, url: raw(func(c net.Conn, _ int) { readRequest(bufio.NewReader(c)) })},
		"no response":     {text: "timeout awaiting response headers", again: perhaps, base: with(func(t *http.Transport) { t.ResponseHeaderTimeout = 20 * time.Millisecond }), url: raw(silent)},
		"a proxy refused": {text: "proxyconnect", again: always, base: viaProxy(refusing), url: text("https://api.test/")},
		"a proxy's 407":   {text: "Proxy Authentication Required", again: perhaps, base: viaProxy(raw(replying("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"))), url: text("https://api.test/")},
		"a proxy's 502":   {text: "Bad Gateway", again: perhaps, base: viaProxy(raw(replying("HTTP/1.1 502 Bad Gateway\r\n\r\n"))), url: text("https://api.test/")},
		"a dial that fails": {text: errBroken.Error(), again: perhaps, base: with(func(t *http.Transport) {
			t.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errBroken }
		})},

		// TLS.
		"an unknown authority": {text: "x509: certificate signed by unknown authority", again: never, url: tlsServer(nil)},
		"another host's":       {text: "x509: certificate is valid for", again: never, base: trusting(func(c *tls.Config) { c.ServerName = "wrong.test" }), url: tlsServer(nil)},
		"expired": {text: "x509: certificate has expired", again: never, base: trusting(func(c *tls.Config) {
			c.Time = func() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
		}), url: tlsServer(nil)},
		"no version in common": {text: "protocol version not supported", again: perhaps, base: trusting(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
			url: tlsServer(&tls.Config{MinVersion: tls.VersionTLS13})},
		"no handshake":     {text: "TLS handshake timeout", again: perhaps, base: with(func(t *http.Transport) { t.TLSHandshakeTimeout = 20 * time.Millisecond }), url: rawTLS(silent)},
		"HTTP, not HTTPS":  {text: "first record does not look like a TLS handshake", again: perhaps, url: rawTLS(replying("HTTP/1.1 400 Bad Request\r\n\r\n"))},
		"no TLS, nor HTTP": {text: "first record does not look like a TLS handshake", again: perhaps, url: rawTLS(replying("SSH-2.0-OpenSSH_9.6\r\n"))},

		// The response.
		"no HTTP":             {text: "malformed HTTP response", again: perhaps, url: raw(replying("hello\r\n\r\n"))},
		"no status":           {text: "malformed HTTP status code", again: perhaps, url: raw(replying("HTTP/1.1 abc\r\n\r\n"))},
		"no version":          {text: "malformed HTTP version", again: perhaps, url: raw(replying("HTTX/1.1 200 OK\r\n\r\n"))},
		"no header":           {text: "malformed MIME header", again: perhaps, url: raw(replying("HTTP/1.1 200 OK\r\nhello\r\n\r\n"))},
		"half a header":       {text: "unexpected EOF", again: perhaps, url: raw(replying("HTTP/1.1 200 OK\r\nA: b"))},
		"a bad length":        {text: "bad Content-Length", again: perhaps, url: raw(replying("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"))},
		"two lengths":         {text: "multiple Content-Length headers", again: perhaps, url: raw(replying("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"))},
		"a bad encoding":      {text: "unsupported transfer encoding", again: perhaps, url: raw(replying("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n"))},
		"too large a header":  {text: "server response headers exceeded", again: perhaps, base: with(func(t *http.Transport) { t.MaxResponseHeaderBytes = 100 }), url: raw(replying("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 5000) + "\r\n\r\n"))},
		"too many early ones": {text: "server response headers exceeded", again: perhaps, base: with(func(t *http.Transport) { t.MaxResponseHeaderBytes = 500 }), url: raw(replying(strings.Repeat("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", 100)))},

		// HTTP/2.
		"GOAWAY":         {text: "server sent GOAWAY", again: perhaps, base: h2c, url: raw(http2Raw("\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0b"))},
		"a stream error": {text: "INTERNAL_ERROR", again: perhaps, base: h2c, url: raw(http2Raw("\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x02"))},
		"a bad frame":    {text: "PROTOCOL_ERROR", again: perhaps, base: h2c, url: raw(http2Raw("\x00\x00\x04\x08\x00\x00\x00\x00\x01\x00\x00\x00\x00"))},
		"HTTP/1 instead": {text: "http2: ", again: perhaps, base: h2c, url: raw(replying("HTTP/1.1 400 Bad Request\r\n\r\n"))},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"PUT", "POST"} {
				want := 1
				if f.again == always || f.again == perhaps && method == "PUT" {
					want = 2
				}
				f.check(t, method, want)
			}
		})
	}
}

func (f *fault) check(t *testing.T, method string, want int) {
	t.Helper()
	run := func(policy headway.Policy, observer headway.Observer, cfg retry.Config) (int, error) {
		base := f.makeBase(t)
		target := okServer(t)
		if f.url != nil {
			target = f.url(t)
		}
		if f.first != nil {
			f.first(t, base, target)
		}
		sends := 0
		counted := roundTripper(func(req *http.Request) (*http.Response, error) {
			sends++
			return base.RoundTrip(req)
		})
		policy.Hosts = []string{"*"}
		next, err := headway.NewTransport(counted, headway.Config{Policies: []headway.Policy{policy}, Observer: observer})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := retry.New(next, cfg)
		if err != nil {
			t.Fatal(err)
		}
		rt.SetJitter(0)
		req := requestTo(t.Context(), method, target, "hello")
		if f.change != nil {
			f.change(req)
		}
		resp, err := rt.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: got %s, want an error", method, resp.Status)
		} else if !strings.Contains(err.Error(), f.text) && !(f.ignored && errors.Is(err, net.ErrClosed)) { // see fault.OfCaller
			t.Errorf("%s: got %q, want %q in it", method, err, f.text)
		}
		return sends, err
	}
	if got, err := run(headway.Policy{}, nil, retry.Config{MaxRetries: 1}); got != want {
		t.Errorf("%s: sent %d times, want %d: %v", method, got, want, err)
	}
	opened := false
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) { opened = opened || e.Kind == headway.EventOpen })
	if _, err := run(headway.Policy{Breaker: &breaker.Config{Failures: 1}}, observer, retry.Config{MaxRetries: retry.None}); opened == f.ignored {
		t.Errorf("%s: the breaker opened: %t, ignored should be %t: %v", method, opened, f.ignored, err)
	}
}

func (f *fault) makeBase(t *testing.T) http.RoundTripper {
	if f.base != nil {
		return f.base(t)
	}
	return with(func(*http.Transport) {})(t)
}

// with makes an *http.Transport.
func with(change func(*http.Transport)) func(*testing.T) http.RoundTripper {
	return func(t *testing.T) http.RoundTripper {
		base := new(http.Transport)
		change(base)
		t.Cleanup(base.CloseIdleConnections)
		return base
	}
}

// h2c is a transport that speaks HTTP/2 without TLS.
func h2c(t *testing.T) http.RoundTripper {
	return with(func(b *http.Transport) {
		b.Protocols = new(http.Protocols)
		b.Protocols.SetUnencryptedHTTP2(true)
	})(t)
}

func viaProxy(proxy func(*testing.T) string) func(*testing.T) http.RoundTripper {
	return func(t *testing.T) http.RoundTripper {
		u, err := url.Parse(proxy(t))
		if err != nil {
			t.Fatal(err)
		}
		return with(func(b *http.Transport) { b.Proxy = http.ProxyURL(u) })(t)
	}
}

// trusting makes a transport that trusts httptest's certificate.
func trusting(change func(*tls.Config)) func(*testing.T) http.RoundTripper {
	return func(t *testing.T) http.RoundTripper {
		srv := httptest.NewTLSServer(nil)
		defer srv.Close()
		cfg := &tls.Config{RootCAs: x509.NewCertPool()}
		cfg.RootCAs.AddCert(srv.Certificate())
		change(cfg)
		return with(func(b *http.Transport) { b.TLSClientConfig = cfg })(t)
	}
}

// resolving makes a transport whose name server responds with a code, or never.
func resolving(code int) func(*testing.T) http.RoundTripper {
	return func(t *testing.T) http.RoundTripper {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go func() {
			buf := make([]byte, 1500)
			for {
				n, from, err := conn.ReadFrom(buf)
				if err != nil {
					return
				}
				end := 12 // of the question: labels, a zero, type and class
				for end < n && buf[end] != 0 {
					end += int(buf[end]) + 1
				}
				if end += 5; code < 0 || end > n {
					continue
				}
				reply := bytes.Clone(buf[:end])
				reply[2], reply[3] = 0x81, 0x80|byte(code)
				copy(reply[6:12], make([]byte, 6)) // no records
				conn.WriteTo(reply, from)
			}
		}()
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
			if err == nil { // a look-up goes on when the request is over
				context.AfterFunc(t.Context(), func() { c.Close() })
			}
			return c, err
		}}
		dialer := &net.Dialer{Resolver: resolver}
		if code < 0 {
			dialer.Timeout = 20 * time.Millisecond
		}
		return with(func(b *http.Transport) { b.DialContext = dialer.DialContext })(t)
	}
}

func text(s string) func(*testing.T) string { return func(*testing.T) string { return s } }

func okServer(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(drain))
	t.Cleanup(srv.Close)
	return srv.URL
}

// drain reads a body until it ends or fails.
func drain(_ http.ResponseWriter, req *http.Request) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func http2Server(t *testing.T) string {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(drain))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Config.MaxHeaderBytes = 10_000
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func tlsServer(cfg *tls.Config) func(*testing.T) string {
	return func(t *testing.T) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(drain))
		srv.TLS = cfg
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL
	}
}

func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// raw is a server that serves its n-th connection with a function, then closes it.
func raw(serve func(c net.Conn, n int)) func(*testing.T) string {
	return func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		var conns []net.Conn
		t.Cleanup(func() {
			l.Close()
			<-done
			for _, c := range conns {
				c.Close()
			}
		})
		go func() {
			defer close(done)
			for n := 0; ; n++ {
				c, err := l.Accept()
				if err != nil {
					return
				}
				conns = append(conns, c)
				go func() {
					serve(c, n)
					c.Close()
				}()
			}
		}()
		return "http://" + l.Addr().String()
	}
}

func rawTLS(serve func(c net.Conn, n int)) func(*testing.T) string {
	return func(t *testing.T) string { return strings.Replace(raw(serve)(t), "http:", "https:", 1) }
}

// readRequest reads a request, its body too.
func readRequest(r *bufio.Reader) {
	if req, err := http.ReadRequest(r); err == nil {
		io.Copy(io.Discard, req.Body)
	}
}

// silent reads until the other side closes.
func silent(c net.Conn, _ int) { io.Copy(io.Discard, c) }

// replying responds to any request with text, and goes on reading.
func replying(text string) func(net.Conn, int) {
	return func(c net.Conn, _ int) {
		buf := make([]byte, 4096)
		c.Read(buf)
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	}
}

// http2Raw greets as HTTP/2 does, waits for a request's headers, and sends a frame.
func http2Raw(frame string) func(net.Conn, int) {
	return func(c net.Conn, _ int) {
		io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		r := bufio.NewReader(c)
		io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		for {
			head := make([]byte, 9)
			if _, err := io.ReadFull(r, head); err != nil {
				return
			}
			io.CopyN(io.Discard, r, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
			if head[3] != 1 { // HEADERS
				continue
			}
			if frame[3] == 7 { // GOAWAY
				io.WriteString(c, frame)
				c.(*net.TCPConn).CloseWrite()
				continue
			}
			io.WriteString(c, frame[:5]+string(head[5:9])+frame[9:]) // for the same stream
		}
	}
}

// get leaves a connection that can be reused.
func get(t *testing.T, base http.RoundTripper, url string) {
	resp, err := base.RoundTrip(requestTo(t.Context(), "GET", url, ""))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = []string{value} }
}

// withBody gives a request a length, and a body that can be sent again.
func withBody(open func() io.ReadCloser, length int64, more ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = open(), length
		r.GetBody = func() (io.ReadCloser, error) { return open(), nil }
		for _, change := range more {
			change(r)
		}
	}
}

func stream(text string) func() io.ReadCloser {
	return func() io.ReadCloser { return io.NopCloser(iotest.OneByteReader(strings.NewReader(text))) }
}

func failing(text string) func() io.ReadCloser {
	return func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(text), iotest.ErrReader(errBody)))
	}
}

// A iotestTimeout is a body whose error looks like the network's.
type iotestTimeout struct{}

func (iotestTimeout) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: errBody}
}

func (iotestTimeout) Close() error { return nil }

// unclosable is a complete body that fails when it is closed.
func unclosable() io.ReadCloser { return failsToClose{strings.NewReader("hello")} }

type failsToClose struct{ io.Reader }

func (failsToClose) Close() error { return errBody }

func directory() io.ReadCloser {
	f, err := os.Open(".")
	if err != nil {
		panic(err)
	}
	return f
}

func closedFile() io.ReadCloser {
	f := directory()
	f.Close()
	return f
}

// The base receives the request itself if its body cannot fail, or if the cause of a
// failure does not matter. Otherwise it receives a copy whose body behaves like the
// original, and the response has the caller's request.
func TestTheBaseGetsTheSameRequest(t *testing.T) {
	file, err := os.Open("faults_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, tt := range map[string]struct {
		body    func() io.ReadCloser
		breaker *breaker.Config
		same    bool
	}{
		"no body":                {func() io.ReadCloser { return nil }, &breaker.Config{}, true},
		"an empty body":          {func() io.ReadCloser { return http.NoBody }, &breaker.Config{}, true},
		"a string":               {func() io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) }, &breaker.Config{}, true},
		"bytes":                  {func() io.ReadCloser { return io.NopCloser(bytes.NewReader([]byte("hello"))) }, &breaker.Config{}, true},
		"a buffer":               {func() io.ReadCloser { return io.NopCloser(bytes.NewBufferString("hello")) }, &breaker.Config{}, true},
		"a file":                 {func() io.ReadCloser { return file }, &breaker.Config{}, true},
		"a stream":               {stream("hello"), &breaker.Config{}, false},
		"a stream, no breaker":   {stream("hello"), nil, true},
		"a string, no breaker":   {func() io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) }, nil, true},
		"a stream that WritesTo": {func() io.ReadCloser { return io.NopCloser(bufio.NewReader(strings.NewReader("hello"))) }, &breaker.Config{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var sent *http.Request
			var read string
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				sent = req
				if req.Body != nil && req.Body != io.ReadCloser(file) {
					var text strings.Builder
					io.Copy(&text, req.Body)
					read = text.String()
					req.Body.Close()
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})
			tr, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}, Breaker: tt.breaker}}})
			if err != nil {
				t.Fatal(err)
			}
			req := requestTo(t.Context(), "POST", "http://api.test", "")
			req.Body = tt.body()
			was := lookAt(req)
			resp, err := tr.RoundTrip(req)
			if err != nil || resp.Request != req {
				t.Errorf("got %v, %v, want a response with the caller's request", resp, err)
			}
			if (sent == req) != tt.same {
				t.Errorf("the base got the same request: %t, want %t", sent == req, tt.same)
			}
			if is := lookAt(req); fmt.Sprint(is) != fmt.Sprint(was) {
				t.Error("the request has changed")
			}
			if strings.Contains(name, "stream") && read != "hello" {
				t.Errorf("the base read %q, want all of it", read)
			}
		})
	}
}

// Five requests that cannot be sent and five whose body fails leave the breaker of a
// healthy host closed and its retry budget unchanged.
func TestTheCallersFaultsCountForNothing(t *testing.T) {
	var served atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		served.Add(1)
	}))
	defer srv.Close()
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	tr, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}, Breaker: &breaker.Config{}}}})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := retry.New(tr, retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, change := range []func(*http.Request){header("Authorization", "Bearer x\n"), withBody(failing("hello"), -1)} {
			req := requestTo(t.Context(), "PUT", srv.URL, "hello")
			change(req)
			if _, err := rt.RoundTrip(req); err == nil {
				t.Error("got no error")
			}
		}
	}
	resp, err := rt.RoundTrip(requestTo(t.Context(), "PUT", srv.URL, "hello"))
	if err != nil {
		t.Fatalf("a healthy host is left alone: %v", err)
	}
	resp.Body.Close()
	if left := rt.Left(requestTo(t.Context(), "PUT", srv.URL, "")); left < 10_000_000_000 {
		t.Errorf("%d billionths of a retry are left, want all", left)
	}
}
