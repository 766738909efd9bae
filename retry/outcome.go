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

// An outcome says whether an attempt may be retried.
type outcome uint8

const (
	// final: a success, or a failure that would be the same again.
	final outcome = iota
	// refused: the server has not processed the request.
	refused
	// unknown: the server may have processed the request.
	unknown
)

// ofError returns the outcome of an attempt that ended in err. body watched the
// request's body, or is nil.
func ofError(req *http.Request, err error, body *fault.Body) outcome {
	u := req.URL
	var (
		dial *net.OpError
		name *net.DNSError
	)
	switch {
	case isRefusal(err):
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

// statusOverloaded is sent by Anthropic and others in place of a 429 when all of
// their clients together exceed their capacity.
const statusOverloaded = 529

// ofResponse returns the outcome of an attempt with this response.
//
// A 503 that throttles is unknown: its sender may have begun to process the request
// before it reached a limit of its own. Any other status throttles only if its
// vendor documents that.
func ofResponse(resp *http.Response, s *retryafter.Signal) outcome {
	code := resp.StatusCode
	switch {
	case code < 400 || s.NoRetry || isRefusalResponse(resp):
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

// isRefusal reports whether err is a local refusal, by the Transport or a limiter
// below it: the request was not sent, and a retry would only be refused again.
func isRefusal(err error) bool {
	return errors.Is(err, headway.ErrThrottled) || errors.Is(err, headway.ErrOpen) || errors.Is(err, headway.ErrKey) ||
		errors.As(err, new(*limiter.Refusal)) // of a limiter below
}

// isRefusalResponse reports whether resp is the Transport's response to a refused
// request, under headway.RefuseWithResponse.
func isRefusalResponse(resp *http.Response) bool {
	return resp.StatusCode >= 400 && len(resp.Header["Headway-Refused"]) > 0
}

// isCertError reports whether err is about a certificate that is not trusted, which
// a retry does not change.
func isCertError(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
		host         x509.HostnameError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &host)
}
