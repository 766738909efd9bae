// Package peek reads the first bytes of a body before its reader does.
package peek

import (
	"bytes"
	"io"
	"net/http"
)

// most is how much of a body is read.
const most = 4 << 10

// Body returns the first bytes of a response's body, 4 KiB at most, and puts them
// back: who reads the body afterwards reads all of it, and the error at which the
// reading stopped.
func Body(resp *http.Response) []byte {
	prefix, err := io.ReadAll(io.LimitReader(resp.Body, most)) // a refusal's: seldom
	back := io.Reader(bytes.NewReader(prefix))
	if err != nil {
		back = io.MultiReader(back, failing{err})
	} else {
		back = io.MultiReader(back, resp.Body)
	}
	resp.Body = &struct {
		io.Reader
		io.Closer
	}{back, resp.Body}
	return prefix
}

// failing is a reader that failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
