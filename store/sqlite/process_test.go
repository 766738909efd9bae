package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/sqlite"
)

// The test binary is also the program whose processes share a file.
func TestMain(m *testing.M) {
	if role := os.Getenv("HEADWAY_TEST_ROLE"); role != "" {
		if err := roles[role](os.Getenv("HEADWAY_TEST_FILE"), os.Getenv("HEADWAY_TEST_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var roles = map[string]func(file, url string) error{"herd": herd, "spender": spender}

// process starts a process of a role.
func process(t *testing.T, role, file, url string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HEADWAY_TEST_ROLE="+role, "HEADWAY_TEST_FILE="+file, "HEADWAY_TEST_URL="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func config(file string) (headway.Config, *sqlite.Store, error) {
	budgets, err := sqlite.Open(sqlite.Config{Path: file})
	return headway.Config{
		Secret: []byte("of the test"), Store: budgets,
		Policies: []headway.Policy{{
			Hosts: []string{"*"}, Store: headway.StorePolicy{Down: headway.StoreDownRefuse},
			Rules: []headway.Rule{
				{Name: "herd", Path: "/herd", Limit: limiter.Limit{N: herdLimit, Per: time.Second, Strict: true}},
				{Name: "day", Path: "/day", Limit: limiter.PerDay(dayLimit)},
				{Name: "debt", Path: "/debt", Limit: limiter.PerDay(10)},
			},
		}},
	}, budgets, err
}

const (
	herdLimit = 20
	herdTime  = 5 * time.Second
	dayLimit  = 60
)

// herd sends as many requests as it can: ten callers each try to use the whole limit. It
// prints how many requests it has sent, and their total time in flight.
func herd(file, url string) error {
	cfg, budgets, err := config(file)
	if err != nil {
		return err
	}
	defer budgets.Close()
	flights := new(flights)
	t, err := headway.NewTransport(flights, cfg)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: t}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(herdTime, cancel)
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range herdLimit * 10 / 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, "GET", url+"/herd", nil)
				if err == nil {
					var resp *http.Response
					if resp, err = client.Do(req); err == nil {
						resp.Body.Close()
					}
				}
				if err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Println(flights.n.Load(), flights.sum.Load())
	return nil
}

// flights is a base that measures the time that requests are in flight.
type flights struct{ n, sum atomic.Int64 }

func (f *flights) RoundTrip(req *http.Request) (*http.Response, error) {
	begin := time.Now()
	resp, err := http.DefaultTransport.RoundTrip(req)
	f.n.Add(1)
	f.sum.Add(int64(time.Since(begin)))
	return resp, err
}

// Four processes share one file, each with requests for ten times its share: by the
// server's own clock, no second has more than the limit, and the limit is used. (The
// test takes 5 s; any time will do.) The former holds on any machine. The latter is
// measured again if the machine was busy with other work.
func TestFourProcessesOnOneFile(t *testing.T) {
	t.Parallel()
	var err error
	for range 5 {
		if err = four(t); err == nil {
			return
		}
		t.Log(err)
	}
	t.Errorf("%v, each time", err)
}

// four runs the processes, and returns an error if they used too little of the limit.
func four(t *testing.T) error {
	var mu sync.Mutex
	var arrivals []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		arrivals = append(arrivals, now)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "budgets.db")
	var all []*exec.Cmd
	var outs []*bufio.Scanner
	for range 4 {
		cmd, out := process(t, "herd", file, server.URL)
		all, outs = append(all, cmd), append(outs, out)
	}
	var n, flights time.Duration
	for i, cmd := range all {
		var m, sum time.Duration
		if outs[i].Scan() {
			fmt.Sscan(outs[i].Text(), (*int64)(&m), (*int64)(&sum))
		}
		n, flights = n+m, flights+sum
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process ended with %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	slices.SortFunc(arrivals, time.Time.Compare)
	for i := range arrivals {
		if j := i + herdLimit; j < len(arrivals) && arrivals[j].Sub(arrivals[i]) < time.Second {
			t.Fatalf("%d arrivals within %v, want at most %d a second", herdLimit+1, arrivals[j].Sub(arrivals[i]), herdLimit)
		}
	}
	// A unit of a strict limit is in use for its period and for the time that its request
	// is in flight. Writing to the file and polling it take as long again.
	cycle := time.Second + 3*flights/max(1, n)
	want := int(herdLimit * herdTime / cycle * 7 / 10)
	if len(arrivals) < want {
		return fmt.Errorf("%d arrivals, want at least %d: the limit is there to be used", len(arrivals), want)
	}
	t.Logf("%d arrivals in %v, want at least %d", len(arrivals), arrivals[len(arrivals)-1].Sub(arrivals[0]), want)
	return nil
}

// spender uses up the budget of a day and adds to a debt, and prints what it has done.
func spender(file, url string) error {
	cfg, budgets, err := config(file)
	if err != nil {
		return err
	}
	defer budgets.Close()
	cfg.Policies[0].MaxWait = headway.NoWait
	t, err := headway.NewTransport(nil, cfg)
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(url, "http://")
	debt, err := t.Quota(host, "debt", "")
	if err != nil {
		return err
	}
	client := &http.Client{Transport: t}
	for {
		if err := debt.Spend(context.Background(), 1); err != nil {
			return err
		}
		fmt.Println("spent")
		resp, err := client.Get(url + "/day")
		if err == nil {
			resp.Body.Close()
		}
	}
}

// Processes are killed at any instant, also during a write: the limit holds for all of
// them together, the debt that they have printed is in the file, and the file is intact.
func TestKilledAtAnyInstant(t *testing.T) {
	t.Parallel()
	var arrivals atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrivals.Add(1) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "budgets.db")
	host := strings.TrimPrefix(server.URL, "http://")
	var said, rounds int64
	for rounds = range 25 {
		var cmds []*exec.Cmd
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 2 {
			cmd, out := process(t, "spender", file, server.URL)
			cmds = append(cmds, cmd)
			all.Go(func() {
				for lines := rand.N(40); out.Scan(); lines-- {
					mu.Lock()
					said++
					mu.Unlock()
					if lines == 0 {
						cmd.Process.Kill() // it goes on until the kill reaches it
					}
				}
			})
		}
		all.Wait()
		for _, cmd := range cmds {
			cmd.Wait() // it was killed
		}
	}
	cfg, budgets, err := config(file)
	if err != nil {
		t.Fatal(err)
	}
	defer budgets.Close()
	left := func(rule string) int64 {
		q, err := headway.OpenQuota(cfg, host, rule, "")
		if err != nil {
			t.Fatal(err)
		}
		n, err := q.Remaining(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	debt := 10 - left("debt")
	if debt < said || debt > said+2*(rounds+1) {
		t.Errorf("the file has %d units of debt, want the %d that were said, and at most one more of each process", debt, said)
	}
	got := arrivals.Load()
	if got > dayLimit || got+left("day") > dayLimit {
		t.Errorf("%d arrivals, and %d left, of %d", got, left("day"), dayLimit)
	}
	if said < 100 || got < dayLimit/2 {
		t.Errorf("%d units and %d arrivals show nothing", said, got)
	}
	if matches, err := filepath.Glob(file + ".damaged*"); err != nil || len(matches) > 0 {
		t.Errorf("a file was damaged: %v, %v", matches, err)
	}
	t.Logf("%d units of debt, %s", debt, strconv.FormatInt(got, 10)+" arrivals")
}
