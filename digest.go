package headway

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// A digester turns key values into text that can leave the process: 24 hex
// digits, the first 96 bits of their HMAC-SHA256. Who does not know the secret
// can neither read a key from its digest nor try guesses. One key has one digest
// whatever rule it is used under, so that a caller can be followed through
// errors and events; two processes with the same secret agree on it.
type digester struct {
	secret []byte // read-only
}

// newDigester returns the digester of a secret. An empty secret would be none:
// it stands for a random one that the process's digesters share.
func newDigester(secret []byte) digester {
	if len(secret) == 0 {
		return digester{processSecret()}
	}
	return digester{bytes.Clone(secret)}
}

var processSecret = sync.OnceValue(func() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: it ends the program when it cannot read
	return secret
})

// digest returns the digest of a key value.
func (d digester) digest(key string) string {
	mac := hmac.New(sha256.New, d.secret)
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}
