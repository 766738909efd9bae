package headwaytest_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
)

// The answers come from httpmock, the pace from Headway, and time is virtual.
// Any mock that is an http.RoundTripper stands under a Transport like this. In
// your package this is a test.
func testHTTPMock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := httpmock.NewMockTransport()
		mock.RegisterResponder("GET", `=~^https://api\.example\.com/users/\d+$`,
			httpmock.NewStringResponder(http.StatusOK, `{"name":"gopher"}`))
		rec := headwaytest.NewRecorder(mock)
		client, err := headway.Wrap(&http.Client{Transport: rec}, limiter.Every(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}

		for i := range 3 {
			resp, err := client.Get(fmt.Sprintf("https://api.example.com/users/%d", i))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}

		rec.StartedAt(t, 0, 10*time.Second, 20*time.Second)
		fmt.Print(rec)
		fmt.Println("answered by httpmock:", mock.GetTotalCallCount())
	})
}

func ExampleRecorder_httpmock() {
	testHTTPMock(new(testing.T)) // go test gives a test its t; an example has none
	// Output:
	//           0s  GET api.example.com/users/0
	//          10s  GET api.example.com/users/1
	//          20s  GET api.example.com/users/2
	// answered by httpmock: 3
}
