package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A progress shows the progress of each import.
type progress interface {
	imported(*service) // one more item
	tick(time.Duration)
	end()
}

// newProgress returns a bar for each service if stdout is a terminal, otherwise a line
// from time to time.
func newProgress(all []*service) progress {
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return newBars(all)
	}
	return lines(all)
}

// bars shows a bar for each service.
type bars struct {
	container *mpb.Progress
	of        map[*service]*mpb.Bar
}

func newBars(all []*service) *bars {
	b := &bars{
		container: mpb.New(mpb.WithOutput(os.Stdout), mpb.WithWidth(40), mpb.WithRefreshRate(50*time.Millisecond)),
		of:        make(map[*service]*mpb.Bar),
	}
	style := mpb.BarStyle().Lbound(" ").Filler("█").Tip("█").Padding("░").Rbound(" ")
	for _, s := range all {
		begin := time.Now()
		b.of[s] = b.container.New(int64(s.items), style,
			mpb.PrependDecorators(
				decor.Name(fmt.Sprintf("  %-8s ", s.name)),
				decor.Name(fmt.Sprintf("%-18s", s.about)),
			),
			mpb.AppendDecorators(
				decor.CountersNoUnit("%3d/%-3d"),
				decor.Any(func(st decor.Statistics) string {
					took := time.Since(begin)
					if st.Completed {
						took = s.took // set before the last increment of the bar
					}
					return fmt.Sprintf(" %4.1f s", took.Seconds())
				}),
			),
		)
	}
	return b
}

func (b *bars) imported(s *service) { b.of[s].Increment() }

func (b *bars) tick(time.Duration) {}

func (b *bars) end() {
	for _, bar := range b.of {
		bar.Abort(false) // no effect on a complete bar
	}
	b.container.Wait()
}

// lines prints a line at each tick.
type lines []*service

func (lines) imported(*service) {}

func (l lines) tick(now time.Duration) {
	fmt.Printf("  %.1f s ", now.Seconds())
	for _, s := range l {
		fmt.Printf("   %s %3d/%d", s.name, s.done, s.items)
	}
	fmt.Println()
}

func (lines) end() {}
