package main

import (
	"math"
	"slices"
)

// A summary describes a list of numbers: half of them lie between low and high.
type summary struct{ median, low, high float64 }

// summarize returns the median and the quartiles of xs, or NaN if it is empty. It ignores
// NaNs, which mean "not measured".
func summarize(xs []float64) summary {
	xs = slices.DeleteFunc(slices.Clone(xs), math.IsNaN)
	slices.Sort(xs)
	return summary{quantile(xs, 0.5), quantile(xs, 0.25), quantile(xs, 0.75)}
}

// quantile returns the q-quantile of sorted, interpolated between its two neighbours.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ratios divides pass by pass, so that changes of the machine between passes do not count.
func ratios(xs, by []float64) []float64 {
	list := make([]float64, min(len(xs), len(by)))
	for i := range list {
		list[i] = xs[i] / by[i]
	}
	return list
}
