package main

import (
	"io"
	"os"
	"os/exec"
)

// A process is another instance of this program. Its standard input ends when its parent
// ends, in whatever way, and then the process ends too.
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

// end ends the process, and returns its error.
func (p *process) end() error {
	p.stdin.Close()
	return p.cmd.Wait()
}

// kill ends the process like kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.end() // the error is that it was killed
}

// orphaned returns when the parent process ends this one, or has ended.
func orphaned() { io.Copy(io.Discard, os.Stdin) }
