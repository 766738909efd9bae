// Outside keeps a budget of tokens, as services that run language models have
// one, although much of it is spent where the client cannot see: what a request
// uses is known only after its answer, and other programs use the same account.
// Its status is 0 only when the budget was right all along and the server had
// to refuse nobody.
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
	err := tell(nil, s.URL)
	s.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
		os.Exit(1)
	}
}
