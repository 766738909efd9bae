package digest

import "testing"

// S13, the digests of it.
func TestDigest(t *testing.T) {
	secret := []byte("a secret of some length")
	d := New(secret, false)
	got := d.digest("tenant-7")
	// The first 96 bits of what openssl dgst -sha256 -hmac says. It must not
	// change: logs and dashboards keep it.
	if want := "b67f2acdab0d5a00db05c42e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again := New([]byte("a secret of some length"), false).digest("tenant-7"); again != got {
		t.Errorf("another process with the secret: got %s, want %s", again, got)
	}
	if other := New([]byte("another secret"), false).digest("tenant-7"); other == got {
		t.Error("another secret gives the same digest")
	}
	if other := d.digest("tenant-8"); other == got {
		t.Error("another key has the same digest")
	}
	secret[0]++
	if again := d.digest("tenant-7"); again != got {
		t.Error("the caller's secret was not copied")
	}
}

func TestDigestWithoutSecret(t *testing.T) {
	got := New(nil, false).digest("k")
	if again := New([]byte{}, false).digest("k"); again != got {
		t.Errorf("got %s and %s, want one digest in the whole process", got, again)
	}
	if zero := (&Digester{secret: func() []byte { return nil }}).digest("k"); zero == got {
		t.Error("no secret was made")
	}
}
