package redis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/store/redis"
	"github.com/redis/rueidis"
)

// A job describes the work of a process of a test. The test binary is also the program of
// the processes that share a server.
type job struct {
	Role   string
	Name   string // of the process
	Addrs  []string
	Prefix string
	URL    string
	For    time.Duration
}

// A role is a policy, and the work of a process under it until the test stops it. The
// process prints the report that run returns.
type role struct {
	policy headway.Policy
	run    func(j job, t *headway.Transport, stop <-chan struct{}) (report any, err error)
}

var roles = map[string]role{"herd": herd, "load": load, "strict": strictHolder, "leased": leasedHolder}

const jobEnv = "HEADWAY_TEST_JOB"

func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.work()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "process %s, %s: %v\n", j.Name, j.Role, err)
		os.Exit(1)
	}
}

// open returns a Transport of the role, and a function that closes it.
func (j job) open() (t *headway.Transport, clean func(), err error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: j.Addrs, DisableCache: true})
	if err != nil {
		return nil, nil, err
	}
	policy := roles[j.Role].policy
	policy.Name, policy.Hosts = j.Role, []string{"*"}
	cfg := headway.Config{Secret: []byte("of the test"), Policies: []headway.Policy{policy}, Observer: headway.ObserverFunc(watch)}
	if cfg.Store, err = redis.New(context.Background(), redis.Config{Client: client, Prefix: j.Prefix}); err == nil {
		t, err = headway.NewTransport(marking{&http.Transport{MaxIdleConnsPerHost: 1000}}, cfg)
	}
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return t, func() { t.CloseIdleConnections(); client.Close() }, nil
}

// marking marks the requests that the store does not count, for the service.
type marking struct{ *http.Transport }

func (m marking) RoundTrip(req *http.Request) (*http.Response, error) {
	if r, ok := req.Context().Value(requestKey{}).(*request); ok && r.Away {
		req = req.Clone(req.Context())
		req.Header.Set("Away", "yes")
	}
	return m.Transport.RoundTrip(req)
}

// work does the job, after it has read a line.
func (j job) work() error {
	t, clean, err := j.open()
	if err != nil {
		return err
	}
	defer clean()
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in) // until the test closes it, or ends
		close(stop)
	}()
	report, err := roles[j.Role].run(j, t, stop)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// A process does a job.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// start starts a process, and waits until it is ready.
func (j job) start(t *testing.T) *process {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), jobEnv+"="+string(text)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that has failed
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the process said %q: %v", line, err)
	}
	return &process{cmd, in, json.NewDecoder(lines)}
}

// begin makes the process begin its job.
func (p *process) begin(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// end makes the process stop, and reads its report.
func (p *process) end(t *testing.T, report any) {
	t.Helper()
	p.in.Close()
	if err := p.out.Decode(report); err != nil {
		t.Errorf("no report: %v", err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("a process ended with %v", err)
	}
}

// kill kills the process at once.
func (p *process) kill() {
	p.Process.Kill()
	p.Wait() // the error is that it was killed
}

// An arrival is a request that has arrived at the service.
type arrival struct {
	at   time.Time
	from string // the process
	id   string // of the request
	away bool   // the store does not count it
}

// A service records the arrivals, by its own clock.
type service struct {
	*httptest.Server
	mu  sync.Mutex // guards all
	all []arrival
}

// serve starts a service. handle may be nil, or delay the response.
func serve(t *testing.T, handle http.HandlerFunc) *service {
	s := new(service)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		now := time.Now()
		s.mu.Lock()
		s.all = append(s.all, arrival{now, req.Header.Get("From"), req.Header.Get("Id"), req.Header.Get("Away") != ""})
		s.mu.Unlock()
		if handle != nil {
			handle(w, req)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// arrivals returns the arrivals so far, in order.
func (s *service) arrivals() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.all)
	slices.SortFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	return all
}

// only returns the arrivals for which a condition holds.
func only(all []arrival, is func(arrival) bool) (some []arrival) {
	for _, a := range all {
		if is(a) {
			some = append(some, a)
		}
	}
	return some
}

// atMost wants at most n arrivals in any half-open second.
func atMost(t *testing.T, what string, n int, all []arrival) {
	t.Helper()
	for i := n; i < len(all); i++ {
		if d := all[i].at.Sub(all[i-n].at); d < time.Second {
			t.Errorf("%s: %d arrivals within %v, want at most %d in a second", what, n+1, d, n)
			return
		}
	}
}

// send sends a request, with its number in a header.
func (j job) send(ctx context.Context, client *http.Client, id string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", j.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("From", j.Name)
	req.Header.Set("Id", id)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
