package retry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// An outcome is what an attempt has come to.
type outcome uint8

const (
	// final: a success, or a failure that would be the same again.
	final outcome = iota
	// refused: the server has not worked on it.
	refused
	// unknown: the server may have processed it.
	unknown
)

// ofError returns the outcome of an attempt that ended in err, and whose body was
// followed by body.
func ofError(req *http.Request, err error, body *fault.Body) outcome {
	u := req.URL
	var (
		dial *net.OpError
		name *net.DNSError
	)
	switch {
	case refusedHere(err):
		return final
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		// Most likely the request cannot be sent. net/http has no type for that error.
		return final
	case body.Failed(), fault.OfCaller(req, err):
		return final
	case isCertError(err):
		return final
	case errors.As(err, &name) && name.IsNotFound && !name.IsTemporary && !name.IsTimeout:
		return final
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &dial) && dial.Op == "dial":
		return refused
	}
	return unknown
}

// statusOverloaded is what Anthropic and others send in place of a 429 when all
// their callers together are too many.
const statusOverloaded = 529

// ofResponse returns the outcome of an attempt with this response.
//
// A 503 that throttles remains unknown: what sends it may have begun to work on the
// request before it ran into a limit of its own. Any other status throttles only by
// what its vendor documents.
func ofResponse(resp *http.Response, s *retryafter.Signal) outcome {
	code := resp.StatusCode
	switch {
	case code < 400 || s.NoRetry || answeredHere(resp):
		return final
	case s.ShouldRetry: // the server vouches for it
		return refused
	case code == http.StatusTooManyRequests, code == statusOverloaded, s.Throttled && code != http.StatusServiceUnavailable:
		return refused
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return unknown
	case code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
		return final
	case code >= 500:
		return unknown
	}
	return final
}

// refusedHere reports whether err is a refusal of the Transport's: the request
// was not sent, and to retry would be to argue. All kinds of them stand here, and
// nowhere else in this package.
func refusedHere(err error) bool {
	return errors.Is(err, headway.ErrThrottled) || errors.Is(err, headway.ErrOpen) || errors.Is(err, headway.ErrKey) ||
		errors.As(err, new(*limiter.Refusal)) // of a limiter below
}

// answeredHere reports whether resp is such a refusal, under
// headway.RefuseWithResponse.
func answeredHere(resp *http.Response) bool {
	return resp.StatusCode >= 400 && len(resp.Header["Headway-Refused"]) > 0
}

// isCertError reports whether the peer has shown no certificate to trust, as it
// will again.
func isCertError(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
		host         x509.HostnameError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &host)
}
