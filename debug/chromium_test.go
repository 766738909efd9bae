package debug

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// A browser is a headless Chromium, spoken to in the DevTools protocol through
// two pipes. It is the one in $CHROMIUM, or chromium; without it the test fails.
type browser struct {
	t   *testing.T
	out *os.File

	mu      sync.Mutex // guards following fields
	next    int
	replies map[int]chan reply
	events  []reply // in order of arrival
	gone    chan struct{}
}

// A reply is the response to a command, or an event.
type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	name := os.Getenv("CHROMIUM")
	if name == "" {
		name = "chromium"
	}
	toRead, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, toWrite} // it reads from 3 and writes to 4
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; make test installs Debian's chromium, CHROMIUM names another", err)
	}
	toRead.Close()
	toWrite.Close()
	b := &browser{t: t, out: out, replies: make(map[int]chan reply), gone: make(chan struct{})}
	go b.listen(in)
	t.Cleanup(func() {
		b.send("", "Browser.close", nil)
		<-b.gone
		out.Close()
		in.Close()
		cmd.Wait() // its status says nothing about the page
	})
	return b
}

// listen receives the browser's replies until it exits.
func (b *browser) listen(in *os.File) {
	defer close(b.gone)
	r := bufio.NewReader(in)
	for {
		message, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m reply
		if err := json.Unmarshal(message[:len(message)-1], &m); err != nil {
			b.t.Error(err)
			return
		}
		b.mu.Lock()
		if c := b.replies[m.ID]; c != nil {
			c <- m
		} else {
			b.events = append(b.events, m)
		}
		b.mu.Unlock()
	}
}

func (b *browser) send(session, method string, params any) (json.RawMessage, error) {
	c := make(chan reply, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.replies[id] = c
	b.mu.Unlock()
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if session != "" {
		command["sessionId"] = session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	if method == "Browser.close" {
		ctx = context.Background() // the test is over; the browser goes
	}
	select {
	case r := <-c:
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-b.gone:
		return nil, errors.New("the browser is gone")
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// A tab is one page of a browser.
type tab struct {
	*browser
	session string
}

// A look is how a tab shows its page.
type look struct {
	width, height int
	phone, dark   bool
	noScripts     bool
}

// open opens url and waits until it is loaded.
func (b *browser) open(url string, as look) *tab {
	b.t.Helper()
	var made struct{ TargetID string }
	tab := &tab{browser: b}
	tab.do("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var attached struct{ SessionID string }
	tab.do("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	tab.session = attached.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime", "Network"} {
		tab.do(domain+".enable", nil, nil)
	}
	tab.do("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": as.width, "height": as.height, "deviceScaleFactor": 1, "mobile": as.phone,
	}, nil)
	if as.dark {
		tab.do("Emulation.setEmulatedMedia", map[string]any{
			"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}},
		}, nil)
	}
	if as.noScripts {
		tab.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	}
	tab.do("Page.navigate", map[string]any{"url": url}, nil)
	if !as.noScripts { // without them the page may be gone for a new one meanwhile
		tab.eval(`document.readyState === "complete" || new Promise(done => addEventListener("load", () => done(true)))`)
	}
	return tab
}

// do gives a command and takes its result.
func (b *tab) do(method string, params, result any) {
	b.t.Helper()
	raw, err := b.send(b.session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(raw, result)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression in the page, or of its promise. It asks
// again where the page was loaded anew meanwhile, as it is without scripts.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	for {
		raw, err := b.send(b.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
		if err != nil && strings.Contains(err.Error(), "navigated") {
			continue
		}
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		break
	}
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// until waits until an expression in the page is true, looking each time that the
// page changes.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.eval(`new Promise(done => {
		const look = () => (` + expression + `) && (watch.disconnect(), done(true));
		const watch = new MutationObserver(look);
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		look();
	})`)
}

// screenshot writes the whole page into a file of the folder that SCREENSHOTS
// names, if it does.
func (b *tab) screenshot(name string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.do("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(png) < 10_000 {
		b.t.Errorf("%s: %d bytes of picture, want a page", name, len(png))
	}
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(dir+"/"+name+".png", png, 0o600); err != nil {
			b.t.Error(err)
		}
	}
}

// clean fails the test for what the browser complained about, such as what the
// content security policy forbade, and for requests that went elsewhere.
func (b *browser) clean(url string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		var p struct {
			Request struct{ URL string }
		}
		if err := json.Unmarshal(e.Params, &p); err != nil {
			b.t.Error(err)
		}
		switch e.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
			b.t.Errorf("%s: %s", e.Method, e.Params)
		case "Network.requestWillBeSent":
			if to := p.Request.URL; !strings.HasPrefix(to, url) && to != "data:," {
				b.t.Errorf("the page asked for %s", to)
			}
		}
	}
}
