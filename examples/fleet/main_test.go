package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary the program too, because the program starts itself.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "tell": // see TestNoProcessIsLeft
		runStory(os.Stderr)
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		main()
	default:
		os.Exit(m.Run())
	}
}

// Whether the limit holds is checked each time. The shares of the processes are measured
// again if the machine was busy with other work.
func TestStory(t *testing.T) {
	var wrong []string
	for range 3 {
		if wrong = story(t); wrong == nil {
			return
		}
		t.Log(wrong)
	}
	t.Errorf("%v, each time", wrong)
}

// story runs the story, and returns what is wrong with it.
func story(t *testing.T) (wrong []string) {
	var out bytes.Buffer
	err := runStory(&out)
	t.Logf("%s", out.String())
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^ *(\d+) s +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$`).FindAllStringSubmatch(out.String(), -1)
	if len(rows) != finishAt {
		t.Fatalf("%d rows, want %d", len(rows), finishAt)
	}
	// sum adds up a column, from the end of one second to the end of another.
	sum := func(column, from, to int) (n int) {
		for _, row := range rows[from:to] {
			i, err := strconv.Atoi(row[column])
			if err != nil {
				t.Fatal(err)
			}
			n += i
		}
		return n
	}
	const total, fourth, away = 2, 6, 7
	if n := sum(fourth, killAt, finishAt); n != 0 {
		wrong = append(wrong, fmt.Sprintf("the killed process has started %d", n))
	}
	if n, own := sum(total, killAt, stopAt), (stopAt-killAt)*limit*(processes-1)/processes; n <= own {
		wrong = append(wrong, fmt.Sprintf("the others have started %d, want more than the %d that they had before", n, own))
	}
	if n := sum(away, 0, stopAt); n != 0 {
		wrong = append(wrong, fmt.Sprintf("%d starts without the store while it was up", n))
	}
	return wrong
}

func TestWithoutAServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	if err := runStory(&out); err == nil || !strings.Contains(err.Error(), "install") || out.Len() > 0 {
		t.Errorf("got %v and %q, want nothing but what to install", err, out.String())
	}
}

// All processes end with their parent, however that ends. All have the same pipe to write
// to, which ends with the last process.
func TestNoProcessIsLeft(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "tell")
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := bufio.NewScanner(r)
	for all := false; !all; all = strings.Contains(lines.Text(), "processes share") {
		if !lines.Scan() {
			t.Fatalf("it has not started: %v", lines.Err())
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("a process is left: %v", err)
	}
}

func TestMost(t *testing.T) {
	at := func(offsets ...time.Duration) (all []arrival) {
		for _, d := range offsets {
			all = append(all, arrival{at: time.Unix(0, 0).Add(d)})
		}
		return all
	}
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		all  []arrival
		want int
	}{
		{nil, 0},
		{at(0), 1},
		{at(0, 0, 0), 3},
		{at(0, s), 1}, // a second does not include its end
		{at(0, s-1), 2},
		{at(0, 500*ms, 900*ms, 1100*ms, 1450*ms, 3*s), 4},
		{at(0, 2*s, 4*s, 4*s+1), 2},
	} {
		if got := most(tt.all); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.all, got, tt.want)
		}
	}
}
