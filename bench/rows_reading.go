package main

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/retryafter"
)

// tenHeaders returns the headers of an ordinary response, which say nothing about
// limits, and further headers.
func tenHeaders(more ...string) http.Header {
	h := http.Header{}
	for _, pair := range [][2]string{
		{"Content-Type", "application/json; charset=utf-8"},
		{"Content-Length", "2483"},
		{"Date", "Sat, 14 Mar 2026 15:09:26 GMT"},
		{"Server", "nginx"},
		{"Cache-Control", "private, max-age=60, s-maxage=60"},
		{"Etag", `W/"5f1d0a2bb7"`},
		{"X-Request-Id", "0HMVQ7K3P1N4B:00000002"},
		{"Strict-Transport-Security", "max-age=31536000; includeSubdomains; preload"},
		{"Vary", "Accept, Authorization, Accept-Encoding"},
		{"X-Content-Type-Options", "nosniff"},
	} {
		h.Set(pair[0], pair[1])
	}
	for i := 0; i+1 < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

// reads reads one response again and again, like the Transport.
func reads(h http.Header) func() operation {
	return func() operation {
		r := retryafter.NewReader(nil, "api.example.com")
		return func(n int) {
			for range n {
				var s retryafter.Signal
				inside.ReadTo(r, &s, http.StatusOK, h, time.Time{})
			}
		}
	}
}

// parsesLists parses the fields as general structured fields, without reading their
// meaning.
func parsesLists(h http.Header, names ...string) func() operation {
	return func() operation {
		return func(n int) {
			for range n {
				for _, name := range names {
					must(httpsfv.UnmarshalList(h.Values(name)))
				}
			}
		}
	}
}

func readingRows() []row {
	const us = "retryafter, all dialects"
	reading := func(name, about string, most float64, h http.Header, peers ...subject) row {
		return row{
			name: "read/" + name, about: about, procs: 1, rounds: rounds, metrics: perOp,
			subjects: append([]subject{clockFloor, {us, ours, ops(reads(h))}}, peers...),
			goals: []goal{
				{us, "ns", clockFloor.name, most},
				{us, "allocs", "", 0},
			},
		}
	}
	structured := tenHeaders("Ratelimit", `"default";r=50;t=30`, "Ratelimit-Policy", `"default";q=100;w=60`)
	return []row{
		reading("nothing", "A response of ten headers, Date among them, that says nothing of limits.", 3.5, tenHeaders()),
		reading("x-ratelimit", "The ten and the three X-RateLimit-*, with a time from now in Reset.", 6,
			tenHeaders("X-Ratelimit-Limit", "5000", "X-Ratelimit-Remaining", "4987", "X-Ratelimit-Reset", "60")),
		reading("x-ratelimit-epoch", "The same with an epoch in Reset, which is measured against Date.", 6,
			tenHeaders("X-Ratelimit-Limit", "5000", "X-Ratelimit-Remaining", "4987", "X-Ratelimit-Reset", "1773502800")),
		reading("structured", "The ten, RateLimit and RateLimit-Policy. httpsfv only parses the two fields.", 25, structured,
			subject{"httpsfv, the two fields", peer, ops(parsesLists(structured, "Ratelimit", "Ratelimit-Policy"))}),
	}
}
