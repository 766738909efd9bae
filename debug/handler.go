package debug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway"
)

// Handler returns the page of t. Each Recent adds what it remembers; one is
// enough, and it should be the Config.Observer of t, or be told by it. Handler
// keeps t in memory.
func Handler(t *headway.Transport, recent ...*Recent) http.Handler {
	return &handler{transport: t, recent: recent, servers: make(map[*http.Server]chan struct{})}
}

type handler struct {
	transport *headway.Transport // read-only
	recent    []*Recent          // read-only

	looking sync.Mutex // held while one looks; guards the following field
	last    sight

	mu      sync.Mutex                     // guards the following field
	servers map[*http.Server]chan struct{} // closed when the server shuts down
}

// A sight is what was seen at one time. What it holds is read-only, and its
// history is that until then.
type sight struct {
	at               time.Time
	took             time.Duration
	hosts            []headway.HostStatus
	refusals, pauses []happening
	outages          []outage
	observed         bool
	history          history
}

// look returns what is to be seen now. However many look, it is looked at most
// once a period.
func (h *handler) look() sight {
	h.looking.Lock()
	defer h.looking.Unlock()
	now := time.Now()
	if !h.last.at.IsZero() && now.Sub(h.last.at) < period {
		return h.last
	}
	s := sight{at: now, hosts: h.transport.Snapshot(), observed: len(h.recent) > 0}
	for _, r := range h.recent {
		refusals, pauses := r.read()
		s.refusals = append(s.refusals, refusals...)
		s.pauses = append(s.pauses, pauses...)
		s.outages = append(s.outages, r.outage())
	}
	s.history = h.last.history.with(now, s.hosts)
	s.took = time.Since(now)
	h.last = s
	return s
}

// ServeHTTP answers with the page, its JSON or its events.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Content-Security-Policy", policy)
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
		return
	}
	query := req.URL.Query()
	q := query.Get("q")
	switch query.Get("as") {
	case "", "html":
		h.write(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
			return page.ExecuteTemplate(b, "page", struct {
				Style  template.CSS
				Script template.JS
				Query  string
				View   view
			}{template.CSS(style), template.JS(script), q, newView(h.look(), q, true)})
		})
	case "json":
		h.write(w, "application/json", func(b *bytes.Buffer) error {
			enc := json.NewEncoder(b)
			enc.SetIndent("", "  ")
			return enc.Encode(newView(h.look(), q, false))
		})
	case "events":
		h.stream(w, req, q)
	default:
		http.Error(w, "as is html, json or events", http.StatusBadRequest)
	}
}

// write answers with all of what f makes, or says that it could not be made.
func (h *handler) write(w http.ResponseWriter, contentType string, f func(*bytes.Buffer) error) {
	var b bytes.Buffer
	if err := f(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Write(b.Bytes()) // net/http drops it for HEAD
}

//go:embed page.html
var text string

//go:embed page.css
var style string

//go:embed page.js
var script string

var page = template.Must(template.New("").Parse(text))

// policy lets the page's own style and script run, and nothing else.
var policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
	"; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
