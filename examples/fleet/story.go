package main

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"time"
)

const (
	processes = 4
	limit     = 40 // in any second, of all processes together
)

// The seconds at whose end something happens.
const (
	killAt   = 3
	stopAt   = 5
	againAt  = 7
	finishAt = 12
)

// A fleet is the processes, their server and the service.
type fleet struct {
	out     io.Writer
	path    string // the server's
	port    int
	server  *process
	crew    []*process // the living processes
	service service

	stopped, again time.Time // when the server was
}

// runStory runs the story, and prints it to out.
func runStory(out io.Writer) (err error) {
	f := &fleet{out: out}
	if f.path, err = findServer(); err != nil {
		return err
	}
	if f.port, err = freePort(); err != nil {
		return err
	}
	if f.server, err = startServer(f.path, f.port); err != nil {
		return err
	}
	defer func() { f.server.end() }()
	web := httptest.NewServer(&f.service)
	defer web.Close()
	err = f.play(web.URL)
	for _, p := range f.crew {
		err = errors.Join(err, p.end())
	}
	if err != nil {
		return err
	}
	return f.sum()
}

// play starts the processes, and prints a row for each second.
func (f *fleet) play(url string) error {
	f.service.came.Add(processes)
	for n := 1; n <= processes; n++ {
		p, err := start("work", addr(f.port), url+"/"+strconv.Itoa(n))
		if err != nil {
			return err
		}
		f.crew = append(f.crew, p)
	}
	came := make(chan struct{})
	go func() {
		f.service.came.Wait()
		close(came)
	}()
	select {
	case <-came:
	case <-time.After(time.Minute):
		return errors.New("the processes do not start")
	}
	begin := time.Now()
	fmt.Fprintf(f.out, "\n  %d processes share a limit of %d requests in any second by %s; each wants far more.\n", processes, limit, filepath.Base(f.path))
	fmt.Fprintf(f.out, "  A refusal by the service pauses all of them for a second.\n\n")
	fmt.Fprintf(f.out, "    %4s   %5s     1   2   3   4   %13s %8s\n", "time", "total", "without store", "refused")
	shown := 0
	for second := 1; second <= finishAt; second++ {
		time.Sleep(time.Until(begin.Add(time.Duration(second) * time.Second)))
		all := f.service.seen()
		f.row(second, all[shown:])
		shown = len(all)
		if err := f.turn(second); err != nil {
			return err
		}
	}
	return nil
}

// row prints the arrivals of one second.
func (f *fleet) row(second int, all []arrival) {
	fmt.Fprintf(f.out, "    %2d s   %5d  ", second, len(all))
	for n := 1; n <= processes; n++ {
		fmt.Fprintf(f.out, " %3d", len(where(all, func(a arrival) bool { return a.process == n })))
	}
	fmt.Fprintf(f.out, "   %13d %8d\n", len(where(all, isAway)), len(where(all, isRefused)))
}

// turn does what happens at the end of a second.
func (f *fleet) turn(second int) (err error) {
	switch second {
	case killAt:
		last := len(f.crew) - 1
		f.crew[last].kill()
		f.crew = f.crew[:last]
		fmt.Fprintf(f.out, "           process %d is killed by kill -9: the others take its share\n", processes)
	case stopAt:
		f.stopped = time.Now()
		err = f.server.end()
		fmt.Fprintf(f.out, "           the server is stopped: each process stays within 1/%d of the limit\n", processes)
	case againAt:
		f.again = time.Now()
		server, err := startServer(f.path, f.port)
		if err != nil {
			return err
		}
		f.server = server
		fmt.Fprintf(f.out, "           the server is started again, empty: the processes find it at their next attempt\n")
	}
	return err
}

// sum prints and checks whether the limit held.
func (f *fleet) sum() error {
	all := f.service.seen()
	away := where(all, isAway)
	last := f.again
	for _, a := range away {
		if a.at.After(last) {
			last = a.at
		}
	}
	back := last.Add(time.Second) // starts without the store no longer count
	before := where(all, func(a arrival) bool { return a.at.Before(f.stopped) })
	after := where(all, func(a arrival) bool { return a.at.After(back) })
	there, alone := max(most(before), most(after)), most(away)
	const share = limit / processes
	fmt.Fprintf(f.out, "\n  While the store was up: at most %d starts in any second, of %d, and %d refused.\n",
		there, limit, len(where(before, isRefused))+len(where(after, isRefused)))
	fmt.Fprintf(f.out, "  From its stop until one second after the last start without it, %.1f s: %d starts without\n  it, at most %d in any second, of %d times %d; all starts together at most %d. %d refused in all.\n\n",
		back.Sub(f.stopped).Seconds(), len(away), alone, len(f.crew), share, most(all), len(where(all, isRefused)))
	var errs []error
	if there > limit {
		errs = append(errs, fmt.Errorf("%d starts in a second, of %d", there, limit))
	}
	if alone > len(f.crew)*share {
		errs = append(errs, fmt.Errorf("%d starts in a second without the store, of %d", alone, len(f.crew)*share))
	}
	if len(before) == 0 || len(away) == 0 || len(after) == 0 {
		errs = append(errs, errors.New("nothing has started with the store, without it, or with it again"))
	}
	return errors.Join(errs...)
}
