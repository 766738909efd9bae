package respbody

import (
	"net/http"
	"runtime"
	"sync"
	"weak"
)

// attachments holds what Attach was given, by response. The pointer is the key,
// and not the body: an http.Client with a Timeout, and many a wrapper, put a
// body of their own into the response that they hand on.
var attachments sync.Map // of weak.Pointer[http.Response] to any

// Attach keeps v for Attached to find, until resp is garbage. v must not lead to
// resp, which would then never be.
func Attach(resp *http.Response, v any) {
	p := weak.Make(resp)
	attachments.Store(p, v)
	runtime.AddCleanup(resp, func(p weak.Pointer[http.Response]) { attachments.Delete(p) }, p)
}

// Attached returns what Attach was given with resp, or nil. A copy of the
// response has none.
func Attached(resp *http.Response) any {
	v, _ := attachments.Load(weak.Make(resp))
	return v
}
