package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// printTree prints the spans of every traced call, each below its parent, with the events
// that say what held it up.
func printTree(w io.Writer, spans tracetest.SpanStubs) {
	for _, s := range spans {
		if !s.Parent.IsValid() {
			printSpan(w, spans, s, "    ")
		}
	}
}

func printSpan(w io.Writer, all tracetest.SpanStubs, s tracetest.SpanStub, indent string) {
	fmt.Fprintf(w, "%s%s  %v\n", indent, s.Name, s.EndTime.Sub(s.StartTime).Round(time.Millisecond))
	for _, e := range s.Events {
		var attrs []string
		for _, a := range e.Attributes {
			attrs = append(attrs, fmt.Sprintf("%s=%s", strings.TrimPrefix(string(a.Key), "headway."), a.Value.String()))
		}
		fmt.Fprintf(w, "%s    · %s: %s\n", indent, e.Name, strings.Join(attrs, ", "))
	}
	for _, child := range all {
		if child.Parent.SpanID() == s.SpanContext.SpanID() {
			printSpan(w, all, child, indent+"  └ ")
		}
	}
}
