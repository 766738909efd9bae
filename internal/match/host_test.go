package match

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tableOf returns the table of one policy per pattern.
func tableOf(t testing.TB, patterns ...string) *HostTable {
	t.Helper()
	table := NewHostTable()
	for i, p := range patterns {
		if _, err := table.Add(p, i); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func TestHostLookup(t *testing.T) {
	patterns := []string{
		"*", "*:9", "*.example.com", "*.eu.example.com", "*.eu.example.com:9", "api.example.com",
		"api.example.com:8443", "plain.example.com:80", "[::1]:8080", "[2001:DB8::1]", "Bücher.Example.", "localhost",
	}
	table := tableOf(t, patterns...)
	for _, tc := range []struct{ url, key, want string }{
		{"https://api.example.com", "api.example.com", "api.example.com"},
		{"http://api.example.com:81", "api.example.com:81", "api.example.com"},
		{"https://api.example.com:8443", "api.example.com:8443", "api.example.com:8443"},
		{"https://example.com", "example.com", "*"}, // the suffix is not the domain itself
		{"https://example.com:9", "example.com:9", "*:9"},
		{"https://a.example.com", "a.example.com", "*.example.com"},
		{"https://a.b.example.com", "a.b.example.com", "*.example.com"},
		{"https://a.notexample.com", "a.notexample.com", "*"},
		{"https://a.eu.example.com", "a.eu.example.com", "*.eu.example.com"},
		{"https://eu.example.com", "eu.example.com", "*.example.com"},
		{"https://a.eu.example.com:9", "a.eu.example.com:9", "*.eu.example.com:9"},
		{"https://a.example.com:9", "a.example.com:9", "*.example.com"}, // the longer suffix beats the port
		{"http://plain.example.com", "plain.example.com", "plain.example.com:80"},
		{"http://plain.example.com:80", "plain.example.com", "plain.example.com:80"},
		{"https://plain.example.com", "plain.example.com", "*.example.com"}, // that is port 443
		{"https://plain.example.com:80", "plain.example.com:80", "plain.example.com:80"},
		{"http://[::1]:8080", "[::1]:8080", "[::1]:8080"},
		{"http://[::1]", "[::1]", "*"},
		{"http://[2001:db8::1]", "[2001:db8::1]", "[2001:DB8::1]"},
		{"http://[2001:DB8::1]:80", "[2001:db8::1]", "[2001:DB8::1]"},
		{"http://[2001:db8::1]:443", "[2001:db8::1]:443", "[2001:DB8::1]"},
		{"https://bücher.example", "xn--bcher-kva.example", "Bücher.Example."},
		{"https://BÜCHER.example", "xn--bcher-kva.example", "Bücher.Example."},
		{"https://b%C3%BCcher.example", "xn--bcher-kva.example", "Bücher.Example."},
		{"https://XN--bcher-kva.example", "xn--bcher-kva.example", "Bücher.Example."},
		{"https://api。example．com", "api.example.com", "api.example.com"},
		{"https://ａｐｉ.exam\u00adple.com", "api.example.com", "api.example.com"},
		{"http://[2001:0db8:0:0::0:1]", "[2001:db8::1]", "[2001:DB8::1]"},
		{"http://[::ffff:127.0.0.1]:3000", "127.0.0.1:3000", "*"},
		{"http://１２７。０。０。１:3000", "127.0.0.1:3000", "*"},
		{"http://[fe80::1%25Eth0]", "[fe80::1%Eth0]", "*"},
		{"http://localhost:0", "localhost:0", "localhost"},
		{"http://localhost:3000", "localhost:3000", "localhost"},
		{"http://127.0.0.1:3000", "127.0.0.1:3000", "*"},
		{"http://.example.com", ".example.com", "*"},
		{"http:///path", "", ""},
		{"http://:80", "", ""},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		key, i := table.Lookup(u.Scheme, u.Host)
		got := ""
		if i >= 0 {
			got = patterns[i]
		}
		if key != tc.key || got != tc.want {
			t.Errorf("%s: got %q of %q, want %q of %q", tc.url, key, got, tc.key, tc.want)
		}
	}
}

func TestHostWithoutPolicy(t *testing.T) {
	table := tableOf(t, "example.com", "other.example.com:8443")
	for _, host := range []string{"a.example.com", "example.org", "other.example.com"} {
		if _, i := table.Lookup("https", host); i != -1 {
			t.Errorf("%s: got policy %d, want none", host, i)
		}
	}
}

// Without a scheme no port is the default, and only the other spellings are one.
func TestHostWithoutScheme(t *testing.T) {
	table := tableOf(t, "example.com")
	for host, want := range map[string]string{"Example.com.": "example.com", "example.com:443": "example.com:443"} {
		if key, i := table.Lookup("", host); key != want || i != 0 {
			t.Errorf("%s: got %q of %d, want %q of 0", host, key, i, want)
		}
	}
}

// C81
func TestOneHost(t *testing.T) {
	for _, pattern := range []string{"example.com", "EXAMPLE.com.", "Example.COM:443", "example.com.:443", "*"} {
		table := tableOf(t, pattern)
		for _, host := range []string{
			"example.com", "Example.COM", "Example.COM:443", "example.com.", "example.com.:443",
			"example.com:", "example.com:0443", "EXAMPLE.COM.:",
		} {
			if key, i := table.Lookup("https", host); key != "example.com" || i != 0 {
				t.Errorf("%s under %s: got %q of %d, want example.com of 0", host, pattern, key, i)
			}
		}
	}
	table := tableOf(t, "example.com")
	for _, host := range []string{"example.com:8443", "Example.com.:8443", "EXAMPLE.com:08443"} {
		if key, _ := table.Lookup("https", host); key != "example.com:8443" {
			t.Errorf("%s: got %q, want example.com:8443", host, key)
		}
	}
}

// A canonical host stays as it is, and has the policy of every spelling of it.
func TestHostCanonicalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "example", "com", "x-y", "ü"}), 1, 4).Draw(t, "labels")
		name := strings.Join(labels, ".")
		table, n := NewHostTable(), 0
		for _, p := range []string{"*.com", "*.example.com", name, "*"} {
			if rapid.Bool().Draw(t, p) {
				if _, err := table.Add(p, n); err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		port := rapid.SampledFrom([]string{"", ":", ":80", ":443", ":0443", ":8080"}).Draw(t, "port")
		spelled := name
		if rapid.Bool().Draw(t, "upper") {
			spelled = strings.ToUpper(spelled)
		}
		if rapid.Bool().Draw(t, "dot") {
			spelled += "."
		}
		scheme := rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme")
		key, i := table.Lookup(scheme, spelled+port)
		want, j := table.Lookup(scheme, name+port)
		if key != want || i != j {
			t.Fatalf("%s: got %q of %d, want %q of %d as for %s", spelled+port, key, i, want, j, name+port)
		}
		if again, k := table.Lookup(scheme, key); again != key || k != i {
			t.Fatalf("%s: got %q of %d when looked up again, want %q of %d", spelled+port, again, k, key, i)
		}
	})
}

func TestHostLookupZeroAllocs(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	table := tableOf(t, "example.com", "*.example.com", "*:8443", "*")
	for _, host := range []string{
		"example.com", "example.com:443", "example.com.", "a.b.example.com:8443", "xn--bcher-kva.example", "[::1]", "[::1]:8443", "127.0.0.1",
	} {
		if n := testing.AllocsPerRun(100, func() { table.Lookup("https", host) }); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", host, n)
		}
	}
}

func BenchmarkHostLookup(b *testing.B) {
	table := tableOf(b, "example.com", "*.example.com")
	for _, host := range []string{"example.com", "a.b.example.com:8443", "Example.COM."} {
		b.Run("host="+host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.Lookup("https", host)
			}
		})
	}
}
