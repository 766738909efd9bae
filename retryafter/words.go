package retryafter

import (
	"strings"
	"time"
)

// A word is a label that stands in a header's name.
type word struct {
	name      string // in lower case
	window    time.Duration
	otherUnit bool // counts something other than requests
}

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// wordOf knows the labels that are common, so that they cost no allocation. A
// calendar month or year is no fixed window.
func wordOf(label string) word {
	switch label {
	case "Requests", "requests":
		return word{name: "requests"}
	case "Tokens", "tokens":
		return word{name: "tokens", otherUnit: true}
	case "Input-Tokens":
		return word{name: "input-tokens", otherUnit: true}
	case "Output-Tokens":
		return word{name: "output-tokens", otherUnit: true}
	case "Project-Tokens":
		return word{name: "project-tokens", otherUnit: true}
	case "Tokens_usage_based":
		return word{name: "tokens_usage_based", otherUnit: true}
	case "Complexity":
		return word{name: "complexity", otherUnit: true}
	case "Endpoint":
		return word{name: "endpoint"}
	case "Second", "second":
		return word{name: "second", window: time.Second}
	case "Minute", "minute":
		return word{name: "minute", window: minute}
	case "Hour", "hour":
		return word{name: "hour", window: hour}
	case "Day", "day":
		return word{name: "day", window: day}
	case "Daily", "daily":
		return word{name: "daily", window: day}
	case "Week", "week":
		return word{name: "week", window: 7 * day}
	case "Month", "month":
		return word{name: "month"}
	case "Year", "year":
		return word{name: "year"}
	case "Api-Token":
		return word{name: "api-token"}
	case "Api-Key":
		return word{name: "api-key"}
	case "Default":
		return word{name: "default"}
	case "Write":
		return word{name: "write"}
	case "Subscription-Reads":
		return word{name: "subscription-reads"}
	case "Subscription-Writes":
		return word{name: "subscription-writes"}
	case "Subscription-Deletes":
		return word{name: "subscription-deletes"}
	case "Tenant-Reads":
		return word{name: "tenant-reads"}
	case "Tenant-Writes":
		return word{name: "tenant-writes"}
	}
	w := word{name: strings.ToLower(label)}
	for part := range strings.FieldsFuncSeq(w.name, func(r rune) bool { return r == '-' || r == '_' }) {
		switch strings.TrimSuffix(part, "s") {
		case "token", "complexity", "point", "credit", "cost", "byte", "character", "audio":
			w.otherUnit = true
		}
	}
	return w
}
