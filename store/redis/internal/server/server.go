// Package server starts real servers for tests: redis-server and redis-cli must be in
// PATH. The servers use free ports of the loopback, keep nothing on disk, and end with
// the test.
package server

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Server is a process.
type Server struct {
	Addr  string
	args  []string
	dir   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// Start starts a server; args are further options, such as --maxmemory 1mb.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir(), args: args}
	t.Cleanup(s.Kill)
	for range 10 {
		s.Addr = addr(t)
		if s.begin(t) {
			return s
		}
		// Another process has taken the port meanwhile.
	}
	t.Fatalf("redis-server does not start:\n%s", s.log())
	return nil
}

// Restart starts the server again, empty, at the same address.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if !s.begin(t) {
		t.Fatalf("redis-server does not start again:\n%s", s.log())
	}
}

// begin starts the process, and waits until it responds. It returns false if the process
// has ended instead.
func (s *Server) begin(t testing.TB) bool {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr)
	args := append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no", "--logfile", s.logfile(),
	}, s.args...)
	cmd, ended := exec.Command("redis-server", args...), make(chan struct{})
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; install redis-server", err)
	}
	go func() {
		cmd.Wait()
		close(ended)
	}()
	s.cmd, s.ended = cmd, ended
	runs := true
	Await(t, "the server does not respond", func() bool {
		select {
		case <-ended:
			runs = false
			return true
		default:
		}
		out, _ := exec.Command("redis-cli", "-p", port, "info", "server").CombinedOutput()
		return bytes.Contains(out, fmt.Appendf(nil, "process_id:%d\r", cmd.Process.Pid)) || bytes.Contains(out, []byte("NOAUTH"))
	})
	return runs
}

func (s *Server) logfile() string { return filepath.Join(s.dir, "log") }

// log returns the server's output.
func (s *Server) log() string {
	text, _ := os.ReadFile(s.logfile())
	return string(text)
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// Replicated waits until each replica of the node has every write that the node received
// before the call.
func (s *Server) Replicated(t testing.TB) {
	t.Helper()
	written := s.offsets(t, "master_repl_offset:")[0]
	Await(t, "a replica is not up to date", func() bool {
		replicas := s.offsets(t, ",offset=")
		return len(replicas) > 0 && slices.Min(replicas) >= written
	})
}

// offsets returns the numbers that follow a label in the server's replication info.
func (s *Server) offsets(t testing.TB, label string) (list []int64) {
	t.Helper()
	for _, part := range strings.Split(s.CLI(t, "info", "replication"), label)[1:] {
		digits := part[:strings.IndexFunc(part+".", func(r rune) bool { return r < '0' || r > '9' })]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		list = append(list, n)
	}
	return list
}

// Signal sends a signal, such as SIGSTOP.
func (s *Server) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// CLI runs redis-cli, and returns its output.
func (s *Server) CLI(t testing.TB, args ...string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr)
	out, err := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Cluster starts a Cluster of three nodes, each with the given number of replicas.
func Cluster(t testing.TB, replicas int) []*Server {
	t.Helper()
	var nodes []*Server
	args := []string{"--cluster", "create"}
	for range 3 * (1 + replicas) {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-config-file", "nodes.conf", "--repl-diskless-sync-delay", "0")
		nodes = append(nodes, s)
		args = append(args, s.Addr)
	}
	nodes[0].CLI(t, append(args, "--cluster-yes", "--cluster-replicas", strconv.Itoa(replicas))...)
	for _, s := range nodes {
		Await(t, "the cluster does not form", func() bool {
			if !strings.Contains(s.CLI(t, "cluster", "info"), "cluster_state:ok") {
				return false
			}
			if strings.Contains(s.CLI(t, "info", "replication"), "master_link_status:down") {
				return false // it could not take over
			}
			known := s.CLI(t, "cluster", "nodes")
			return strings.Count(known, "connected") == len(nodes) && strings.Count(known, "slave") == 3*replicas
		})
	}
	return nodes
}

// Addrs returns the addresses of servers.
func Addrs(nodes []*Server) []string {
	var list []string
	for _, s := range nodes {
		list = append(list, s.Addr)
	}
	return list
}

// addr returns a free address of the loopback. The port 10,000 above it, where the nodes
// of a Cluster talk to each other, is free too.
func addr(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port > 55535 {
			port -= 20000
		}
		free := true
		for _, p := range []int{port, port + 10000} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Await waits until is returns true. After two minutes it fails the test: no machine is
// that busy.
func Await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; {
		if is() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal(what)
}
