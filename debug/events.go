package debug

import (
	"bytes"
	"net/http"
	"time"
)

const (
	every    = time.Second      // between events, if an event takes at most a twentieth of that to make
	patience = 10 * time.Second // with a client that receives nothing
)

// stream sends the live part of the page until the client disconnects, has received
// nothing for too long, or the server shuts down.
func (h *handler) stream(w http.ResponseWriter, req *http.Request, in window) {
	w.Header().Set("Content-Type", "text/event-stream")
	if req.Method == http.MethodHead {
		return
	}
	down := h.shutdown(req)
	control := http.NewResponseController(w)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-req.Context().Done():
			return
		case <-down:
			return
		case <-timer.C:
		}
		s := h.look()
		begin := time.Now()
		e, err := s.event(in)
		if err != nil {
			return
		}
		took := s.took + time.Since(begin)
		// This replaces the server's timeout, which is for responses that end. A writer
		// without deadlines is not the server's own, and decides for itself.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
		if _, err := w.Write(e); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		timer.Reset(max(every, 20*took))
	}
}

// mostShared bounds how many different events of one sight are kept for other clients.
const mostShared = 16

// event returns the live part of the page as an event. Clients with the same window share
// it.
func (s *sight) event(in window) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.live[in]; e != nil {
		return e, nil
	}
	var live bytes.Buffer
	if err := page.ExecuteTemplate(&live, "live", newView(s, in)); err != nil {
		return nil, err
	}
	e := event(live.Bytes())
	if len(s.live) < mostShared {
		s.live[in] = e
	}
	return e, nil
}

// event returns HTML as one server-sent event. A carriage return would end a line
// there.
func event(html []byte) []byte {
	html = bytes.TrimSpace(html)
	var e []byte
	for line := range bytes.Lines(bytes.ReplaceAll(html, []byte("\r"), []byte("&#13;"))) {
		e = append(append(e, "data: "...), line...)
	}
	return append(e, "\n\n"...)
}

// shutdown returns a channel that is closed when the request's server begins to
// shut down; it would wait for the stream.
func (h *handler) shutdown(req *http.Request) <-chan struct{} {
	server, ok := req.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	down := h.servers[server]
	if down == nil {
		down = make(chan struct{})
		h.servers[server] = down
		server.RegisterOnShutdown(func() { close(down) })
	}
	return down
}
