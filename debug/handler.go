package debug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway"
)

// Handler returns the page of t. A Recent adds the latest refusals and pauses; one
// is enough, and it should be, or receive the events of, the Config.Observer of t.
// Handler keeps t in memory. It serves the names of the loopback interface only;
// see NewHandler for others.
func Handler(t *headway.Transport, recent ...*Recent) http.Handler {
	return NewHandler(t, Config{Recent: recent})
}

// A Config configures a page. The zero Config is valid.
type Config struct {
	// Recent adds the latest refusals and pauses; one is enough.
	Recent []*Recent
	// Hosts are the names that the page is served under, besides localhost,
	// 127.0.0.0/8 and [::1]: host names or addresses in any spelling, each at any
	// port. A request for any other name is refused with 403, so that no page of
	// another site can read this one by pointing a name of its own here. "*" is
	// every name: for pages behind authentication.
	Hosts []string
}

// NewHandler is Handler with a Config.
func NewHandler(t *headway.Transport, cfg Config) http.Handler {
	h := &handler{transport: t, recent: slices.Clone(cfg.Recent), names: map[string]bool{}, servers: make(map[*http.Server]chan struct{})}
	for _, name := range cfg.Hosts {
		h.names[nameOf(name)] = true
	}
	return h
}

type handler struct {
	transport *headway.Transport // read-only
	recent    []*Recent          // read-only
	names     map[string]bool    // read-only: Config.Hosts

	looking sync.Mutex // held while the Transport is read; guards the following field
	last    *sight     // nil: there was no request yet

	mu      sync.Mutex                     // guards the following field
	servers map[*http.Server]chan struct{} // closed when the server shuts down
}

// A sight is the state of the Transport at one time, with the history until then. It is
// read-only.
type sight struct {
	at                     time.Time
	took                   time.Duration
	hosts                  []headway.HostStatus // what matters most comes first
	refusals, pauses, rows []happening
	outages                []outage
	observed               bool
	history                history

	mu   sync.Mutex        // guards the following field
	live map[window][]byte // the page's live part, as events
}

// look returns the present sight. The Transport is read at most once a period, however
// many requests there are.
func (h *handler) look() *sight {
	h.looking.Lock()
	defer h.looking.Unlock()
	now := time.Now()
	var past history
	if h.last != nil {
		if now.Sub(h.last.at) < period {
			return h.last
		}
		past = h.last.history
	}
	s := &sight{at: now, hosts: h.transport.Snapshot(), observed: len(h.recent) > 0, live: map[window][]byte{}}
	s.history = past.with(now, s.hosts)
	byImportance(s.hosts)
	for _, r := range h.recent {
		refusals, pauses, rows := r.read()
		s.refusals = append(s.refusals, refusals...)
		s.pauses = append(s.pauses, pauses...)
		s.rows = append(s.rows, rows...)
		s.outages = append(s.outages, r.outage())
	}
	s.took = time.Since(now)
	h.last = s
	return s
}

// ServeHTTP serves the page, its JSON or its events.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Content-Security-Policy", policy)
	if !h.servesName(req.Host) {
		http.Error(w, "the page is served under the names of the loopback interface and of Config.Hosts only", http.StatusForbidden)
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
		return
	}
	query := req.URL.Query()
	as := query.Get("as")
	if as != "" && as != "html" && as != "json" && as != "events" {
		http.Error(w, "as must be html, json or events", http.StatusBadRequest)
		return
	}
	in, err := windowOf(query, as != "json")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch as {
	case "json":
		h.write(w, "application/json", func(b *bytes.Buffer) error {
			enc := json.NewEncoder(b)
			enc.SetIndent("", "  ")
			return enc.Encode(newView(h.look(), in))
		})
	case "events":
		h.stream(w, req, in)
	default:
		h.write(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
			return page.ExecuteTemplate(b, "page", struct {
				Style  template.CSS
				Script template.JS
				View   view
			}{template.CSS(style), template.JS(script), newView(h.look(), in)})
		})
	}
}

// write responds with all that f makes, or with its error.
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
