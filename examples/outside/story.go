package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// runStory has four parties spend one budget, over base, and prints what is left after
// each step. The error names every step after which that was wrong.
func runStory(base http.RoundTripper, url string) error {
	st := &story{begin: time.Now()}
	transport, err := headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{
			Hosts: []string{"*"},
			Rules: []headway.Rule{{
				Name:   "tokens",
				Limit:  limiter.Limit{N: budget, Per: period, Strict: true},
				Cost:   headway.FromCallCost, // the estimate
				Settle: usedInHeader,         // the truth
			}},
		}},
		Observer: headway.ObserverFunc(st.started),
	})
	if err != nil {
		return err
	}
	st.quota, err = transport.Quota(strings.TrimPrefix(url, "http://"), "tokens", "")
	if err != nil {
		return err
	}
	client := &caller{url: url, http: &http.Client{Transport: transport}}
	other := &caller{url: url, http: &http.Client{Transport: base}} // Headway does not see what it does

	fmt.Printf("\n  An account has %d tokens in any %.0f s. Many of them are spent out of the client's sight:\n\n", budget, period.Seconds())
	fmt.Printf("    time   %-62s %6s\n", "", "left")

	used, err := client.ask("a request, estimated at 400", 400, 150)
	st.fail(err)
	st.step(850, "  used %d, says its header: Rule.Settle returns the rest", used)

	st.until(period / 4)
	used, err = other.ask("", 0, 300)
	st.fail(err)
	st.fail(st.quota.Spend(context.Background(), used))
	st.step(550, "another program used %d: Quota.Spend", used)

	st.until(period / 2)
	used, err = client.stream("a request, estimated at 200", 200, 700)
	st.fail(err)
	st.step(-150, "  used %d, says its body: headway.Settle makes a debt", used)

	var waiting sync.WaitGroup
	waiting.Go(func() {
		st.fail(st.quota.Wait(named("  the job's turn has come: it uses 250"), 250))
		_, err := other.ask("", 0, 250)
		st.fail(err)
	})
	time.Sleep(period / 20)
	st.step(-150, "a job with a client of its own needs 250: Quota.Wait")
	waiting.Go(func() {
		used, err := client.ask("  and so has the request's", 500, 480)
		st.fail(err)
		st.step(270, "  used %d, says its header", used)
	})
	time.Sleep(period / 20)
	st.step(-150, "a request, estimated at 500, waits behind it")
	waiting.Wait()

	if st.wrong == nil {
		fmt.Print("\n  The client always knew what was left, and the server refused no request.\n\n")
	}
	return st.wrong
}

// A story is the state of the story so far.
type story struct {
	begin time.Time
	quota *headway.Quota

	mu    sync.Mutex // guards following fields, and the output
	wrong error
}

// until waits until the story has that age.
func (st *story) until(age time.Duration) { time.Sleep(time.Until(st.begin.Add(age))) }

// step prints a line, and checks what is left.
func (st *story) step(want int64, format string, args ...any) {
	left, err := st.quota.Remaining(context.Background())
	st.fail(err)
	st.line(left, fmt.Sprintf(format, args...))
	if left != want {
		st.fail(fmt.Errorf("%d tokens are left, want %d, after: %s", left, want, fmt.Sprintf(format, args...)))
	}
}

func (st *story) line(left int64, what string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	fmt.Printf("  %4.2f s   %-62s %6d\n", time.Since(st.begin).Seconds(), what, left)
}

func (st *story) fail(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.wrong = errors.Join(st.wrong, err)
}

// nameKey is the context's key for the name of a request.
type nameKey struct{}

func named(name string) context.Context {
	return context.WithValue(context.Background(), nameKey{}, name)
}

// started prints the start of a request that has a name.
func (st *story) started(ctx context.Context, e headway.Event) {
	if name, ok := ctx.Value(nameKey{}).(string); ok && e.Kind == headway.EventStart {
		st.line(e.Remaining, name)
	}
}
