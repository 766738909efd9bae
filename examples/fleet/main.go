// Fleet shows four processes that share one limit through a Redis or Valkey server, and
// all want far more than the limit. It starts the server and the processes itself, and
// prints once per second what arrives at a service that enforces the limit by its own
// clock. Then one process is killed, and the server is down for a while. The exit status
// is 0 only if the limit held while the server was up, and no process took more than its
// share while it was down.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run runs the story, or is one of the processes in it.
func run(args []string) error {
	switch {
	case len(args) == 0:
		return runStory(os.Stdout)
	case len(args) == 3 && args[0] == "work":
		signal.Ignore(os.Interrupt) // it ends with its parent
		return work(args[1], args[2])
	case len(args) == 3 && args[0] == "keep":
		signal.Ignore(os.Interrupt)
		port, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return keep(args[1], port)
	}
	return fmt.Errorf("unknown arguments %q: want none", args)
}
