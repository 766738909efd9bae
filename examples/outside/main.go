// Outside stays within a budget of tokens, like those of services that run language
// models, although much of it is spent where the client cannot see: what a request uses
// is known only after its response, and other programs use the same account. The exit
// status is 0 only if the budget was right after every step, and the server refused no
// request.
package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"time"
)

const (
	budget = 1000 // tokens in any period
	period = 2 * time.Second
)

func main() {
	s := httptest.NewServer(new(server))
	err := runStory(nil, s.URL)
	s.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
		os.Exit(1)
	}
}
