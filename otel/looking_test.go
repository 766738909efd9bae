package otelheadway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headway-go/headway"
	otelheadway "github.com/headway-go/headway/otel"
)

// While metrics are collected, what is new is counted: nothing is held while the reader's
// code runs. As reported: lodgvideon/poseidon-http-server 109 (a scrape held the lock that
// a request with a new label waits for).
func TestCollectingHoldsUpNoRequest(t *testing.T) {
	var observer *otelheadway.Observer
	n := 0
	filter := func(attribute.KeyValue) bool {
		n++
		counted := make(chan bool)
		go func() {
			defer close(counted)
			observer.Observe(context.Background(), headway.Event{Kind: headway.EventMalformed, Policy: "p", Host: fmt.Sprint("new", n)})
		}()
		select {
		case <-counted:
		case <-time.After(10 * time.Second):
			t.Error("a request to a new host waits for a collection")
		}
		return true
	}
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		sdkmetric.NewView(sdkmetric.Instrument{Name: "headway.overflows"}, sdkmetric.Stream{AttributeFilter: filter})))
	var err error
	observer, err = otelheadway.NewObserver(otelheadway.WithMeterProvider(meters))
	if err != nil {
		t.Fatal(err)
	}
	observer.Observe(t.Context(), headway.Event{Kind: headway.EventOverflow, Policy: "p", Host: "h"})
	if err := reader.Collect(t.Context(), new(metricdata.ResourceMetrics)); err != nil || n == 0 {
		t.Errorf("collected with %v, %d attributes", err, n)
	}
}
