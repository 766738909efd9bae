package respbody

import (
	"net/http"
	"runtime"
	"sync"
	"weak"
)

// attachments holds the values of Attach by response. The key is the pointer to the
// response instead of its body: an http.Client with a Timeout, like many wrappers, puts
// its own body into the response that it passes on.
var attachments sync.Map // of weak.Pointer[http.Response] to any

// Attach keeps v for Attached until resp is garbage. v must not lead to resp, which would
// then never become garbage.
func Attach(resp *http.Response, v any) {
	p := weak.Make(resp)
	attachments.Store(p, v)
	runtime.AddCleanup(resp, func(p weak.Pointer[http.Response]) { attachments.Delete(p) }, p)
}

// Attached returns the value that Attach keeps for resp, or nil. It returns nil for a copy
// of the response.
func Attached(resp *http.Response) any {
	v, _ := attachments.Load(weak.Make(resp))
	return v
}
