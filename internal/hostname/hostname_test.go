package hostname_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/headway-go/headway/internal/hostname"
	"pgregory.net/rapid"
)

// dials returns the address that net/http dials for a URL, as a dialler reads it;
// empty where it dials none.
func dials(u *url.URL) string {
	var addr string
	t := &http.Transport{DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
		addr = to
		return nil, errors.New("not for real")
	}}
	t.RoundTrip(&http.Request{Method: "GET", URL: u, Header: http.Header{}})
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String() // a zone has its case
	} else {
		name = strings.TrimSuffix(strings.Map(func(r rune) rune {
			if r < 0x80 {
				return unicode.ToLower(r)
			}
			return r // it is no name that can be looked up
		}, name), ".")
	}
	if port = strings.TrimLeft(port, "0"); port == "" {
		port = "0"
	}
	return net.JoinHostPort(name, port)
}

// canonical is the address by what Canonical returns.
func canonical(u *url.URL) string {
	_, name, port := hostname.Canonical(u.Scheme, u.Host)
	return net.JoinHostPort(strings.Trim(name, "[]"), port)
}

// spell draws a spelling of a name.
func spell(t *rapid.T, name string) string {
	var b strings.Builder
	for _, r := range name {
		switch how := rapid.IntRange(0, 7).Draw(t, "how"); {
		case how == 0:
			b.WriteString(strings.ToUpper(string(r)))
		case how == 1 && r == '.':
			b.WriteString(rapid.SampledFrom([]string{"。", "．", "｡"}).Draw(t, "stop"))
		case how == 1 && r > ' ' && r <= '~':
			b.WriteRune(r + 0xfee0) // full width
		case how == 2:
			b.WriteString("\u00ad" + string(r)) // behind a soft hyphen
		case how == 3 && r > '~':
			b.WriteString(url.PathEscape(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestWhatIsDialled: two spellings have one text exactly if net/http dials one
// address for them. Public reports of policies that compared the text: the allow
// and deny lists of stripe/smokescreen 264 were passed by in an international form,
// those of nolabs-ai/nono 1676 with a trailing dot, and 127。0。0。1 is an IP address
// in benoitc/hackney 920.
func TestWhatIsDialled(t *testing.T) {
	for _, raw := range []string{
		"https://api.example.com", "https://API.example.com.:0443/", "http://ａｐｉ。example．com:", "https://api.example.com\u00ad",
		"http://127.0.0.1", "http://127。0。0。1", "http://[::ffff:7f00:1]", "http://１２７.0.0.1:80",
		"http://[::1]", "http://[0:0::0:1]:080", "http://[FE80::1%25en0]", "http://[fe80::1%25EN0]", "http://[::1%250]",
		"https://bücher.example", "https://xn--bcher-kva.example", "https://BU\u0308CHER.example", "https://straße.example",
		"https://faß.example:8443", "https://_dmarc.example", "https://a_b.bücher", "https://-a.example", "https://xn--a.example", "https://☃.net",
		"http://example.com:0", "http://example.com:00", "http://example.com:65536", "http://0x7f.1", "http://127.1", "http://a..b", "https://例え。テスト。",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := canonical(u), dials(u); got != want {
			t.Errorf("%s: got %s, want what is dialled: %s", raw, got, want)
		}
		text, _, _ := hostname.Canonical(u.Scheme, u.Host)
		if again, _, _ := hostname.Canonical(u.Scheme, text); again != text {
			t.Errorf("%s: got %s of %s, want it to stay", raw, again, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"api.example.com", "bücher.example", "straße.example", "127.0.0.1", "a-b.c", "例え.テスト"}).Draw(t, "name")
		raw := rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme") + "://" + spell(t, name) +
			rapid.SampledFrom([]string{"", ".", "。"}).Draw(t, "dot") + rapid.SampledFrom([]string{"", ":", ":80", ":443", ":0443", ":8443"}).Draw(t, "port")
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		if got, want := canonical(u), dials(u); got != want {
			t.Fatalf("%q: got %s, want what is dialled: %s", raw, got, want)
		}
	})
	rapid.Check(t, func(t *rapid.T) { // and any host at all
		u := &url.URL{Scheme: "http", Host: rapid.StringMatching(`(\[?[a-zA-Z0-9.%ｱ-ﾝüÜ。_-]{1,9}\]?)(:[0-9]{0,4})?`).Draw(t, "host")}
		want := dials(u)
		if host, _, _ := net.SplitHostPort(want); want == "" || host == "" || strings.ContainsAny(host, "[]") {
			return
		}
		if got := canonical(u); got != want {
			t.Fatalf("%q: got %s, want what is dialled: %s", u.Host, got, want)
		}
	})
}

// TestCanonicalAllocs: what is canonical but for a default port or a trailing dot
// costs nothing.
func TestCanonicalAllocs(t *testing.T) {
	for _, host := range []string{"example.com", "example.com:443", "example.com.", "[::1]:8443", "[2001:db8::1]", "127.0.0.1:3000"} {
		if n := testing.AllocsPerRun(100, func() { hostname.Canonical("https", host) }); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", host, n)
		}
	}
}
