package line

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Now returns the time since the line's epoch.
func (l *Line) Now() time.Duration { return time.Duration(l.epoch.clock()) }
