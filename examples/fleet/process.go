package main

import (
	"io"
	"os"
	"os/exec"
)

// A process is this program once more. Its standard input ends when we end, however
// that is, and then it ends too.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func start(args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, args...)}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// end ends the process, and returns what was wrong with it.
func (p *process) end() error {
	p.stdin.Close()
	return p.cmd.Wait()
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.end() // that it was killed is no news
}

// orphaned returns when the process that has started this one ends it, or has ended.
func orphaned() { io.Copy(io.Discard, os.Stdin) }
