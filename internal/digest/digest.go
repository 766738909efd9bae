// Package digest turns keys into what may stay in memory and leave the process: sums
// and keyed digests. A key itself lives as long as the request that brought it.
package digest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// A Digester turns key values into text that can leave the process: 24 hex
// digits, the first 96 bits of their HMAC-SHA256. Without the secret a digest
// neither shows its key nor lets guesses be tried. One key has one digest
// whatever rule it is used under, so that a caller can be followed through
// errors and events; two processes with the same secret agree on it. Any number of
// goroutines may use it.
type Digester struct {
	secret func() []byte // read-only; a function, so that no form of printing a Digester shows it
	known  *Memo         // nil: digests are needed too rarely to be remembered
}

// New returns the Digester of a secret. An empty secret would be none: it stands for a
// random one that the Digesters of a process share. With remember, digests are
// remembered.
func New(secret []byte, remember bool) *Digester {
	d := &Digester{secret: processSecret}
	if len(secret) > 0 {
		secret = bytes.Clone(secret)
		d.secret = func() []byte { return secret }
	}
	if remember {
		d.known = new(Memo)
	}
	return d
}

var processSecret = sync.OnceValue(func() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: it ends the program when it cannot read
	return secret
})

func (d *Digester) digest(key string) string {
	mac := hmac.New(sha256.New, d.secret())
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// A Sum stands for a text wherever that is remembered, so that neither its length nor
// its content stays in memory. It has 128 bits under seeds that are random in each
// process, so that two texts with one sum cannot be searched for. Zero stands for no
// text.
type Sum [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// SumOf returns the sum of a text.
func SumOf(text string) Sum {
	return Sum{maphash.String(seeds[0], text), maphash.String(seeds[1], text) | 1}
}

// A Key is a key under a rule; the zero Key is none.
type Key struct {
	Sum  Sum
	text string // the key, of a request on its way; else its digest
	kept bool   // it is the digest
}

// KeyOf returns a key; none where value is empty.
func KeyOf(value string) Key {
	if value == "" {
		return Key{}
	}
	return Key{Sum: SumOf(value), text: value}
}

// None reports whether there is no key.
func (k *Key) None() bool { return k.Sum == Sum{} }

// Of returns the digest of a key, or nothing for none.
func (d *Digester) Of(k Key) string {
	switch {
	case k.None() || k.kept:
		return k.text
	case d.known == nil:
		return d.digest(k.text)
	}
	return d.known.Text(k.Sum, k.text, d.digest)
}

// Keep returns k for what outlives the request: without the key itself.
func (d *Digester) Keep(k Key) Key {
	if k.None() {
		return k
	}
	return Key{Sum: k.Sum, text: d.Of(k), kept: true}
}

// Join returns the digests of several keys as one text, each of them once.
func Join(digests []string) string {
	var each []string
	for _, d := range digests {
		if !slices.Contains(each, d) {
			each = append(each, d)
		}
	}
	return strings.Join(each, "+")
}
