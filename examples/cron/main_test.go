package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMain makes the test binary the program too, because the program starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[2], "http://") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestStory(t *testing.T) {
	var out bytes.Buffer
	if err := runStory(&out); err != nil {
		t.Error(err)
	}
	const want = `A quota of 10 requests in any 24 hours; each run has work for 4.
run 1
  4 sent
run 2
  4 sent
run 3
  2 sent; the quota is used up, and has room again in 24h0m0s
run 4
  0 sent; the quota is used up, and has room again in 24h0m0s
The server received 10 requests.
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// Without the file, each run has a full quota: only the file makes them share it.
func TestAnotherFileIsAnotherQuota(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	for range 4 {
		if err := run(new(bytes.Buffer), filepath.Join(t.TempDir(), "budgets.db"), server.URL); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 4*work {
		t.Errorf("got %d requests, want %d", requests.Load(), 4*work)
	}
}
