package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// findServer returns the path of a server that is installed.
func findServer() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH: install one, such as Debian's package redis-server")
}

// keep runs a server that keeps nothing on disk, for as long as this program's parent
// lives: the server would not end with its parent by itself.
func keep(path string, port int) error {
	dir, err := os.MkdirTemp("", "headway-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	orphaned()
	cmd.Process.Kill()
	cmd.Wait()
	return nil
}

// startServer starts a server in a process that keeps it, and returns when the server
// accepts connections.
func startServer(path string, port int) (*process, error) {
	p, err := start("keep", path, strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	for range 6000 {
		conn, err := net.Dial("tcp", addr(port))
		if err == nil {
			conn.Close()
			return p, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.end()
	return nil, fmt.Errorf("%s does not accept connections on %s", path, addr(port))
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort returns a free port of the loopback.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
