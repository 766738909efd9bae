package headway

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"sync"
)

// A digester turns key values into text that can leave the process: 24 hex
// digits, the first 96 bits of their HMAC-SHA256. Without the secret a digest
// reveals nothing about its key, and guesses cannot be tried. One key has one digest
// whatever rule it is used under, so that a caller can be followed through
// errors and events; two processes with the same secret agree on it.
type digester struct {
	secret func() []byte // read-only; a function, so that no form of printing a Transport shows it
}

// newDigester returns the digester of a secret. An empty secret would be none:
// it stands for a random one that the process's digesters share.
func newDigester(secret []byte) digester {
	if len(secret) == 0 {
		return digester{processSecret}
	}
	secret = bytes.Clone(secret)
	return digester{func() []byte { return secret }}
}

var processSecret = sync.OnceValue(func() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: it ends the program when it cannot read
	return secret
})

// digest returns the digest of a key value.
func (d digester) digest(key string) string {
	mac := hmac.New(sha256.New, d.secret())
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// A keySum stands for a key wherever that is remembered, so that neither its length
// nor its content stays in memory. It has 128 bits under seeds that are random in each
// process, so that keys with the same sum cannot be searched for. Zero stands for no key.
type keySum [2]uint64

var sumSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func sumOf(text string) keySum {
	return keySum{maphash.String(sumSeeds[0], text), maphash.String(sumSeeds[1], text) | 1}
}

// A keyRef is a key under a rule; the zero keyRef is none.
type keyRef struct {
	sum  keySum
	text string // the key, of a request on its way; else its digest
	kept bool   // it is the digest
}

// refTo returns the ref of a key; of none where that is empty.
func refTo(key string) keyRef {
	if key == "" {
		return keyRef{}
	}
	return keyRef{sum: sumOf(key), text: key}
}

func (k *keyRef) none() bool { return k.sum == keySum{} }

// digestOf returns the digest of a key, or nothing for none.
func (t *Transport) digestOf(k keyRef) string {
	switch {
	case k.none() || k.kept:
		return k.text
	case t.observer == nil:
		return t.digests.digest(k.text)
	}
	return t.known.text(k.sum, k.text, t.digests.digest)
}

// keep returns k for what outlives the request: without the key itself.
func (t *Transport) keep(k keyRef) keyRef {
	if k.none() {
		return k
	}
	return keyRef{sum: k.sum, text: t.digestOf(k), kept: true}
}
