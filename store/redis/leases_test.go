package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// A commands is a proxy for a server that counts the commands that clients send.
type commands struct {
	net.Listener
	to string

	mu    sync.Mutex // guards count
	count map[string]int
}

func newCommands(t *testing.T, to string) *commands {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &commands{Listener: l, to: to, count: map[string]int{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c)
		}
	}()
	return p
}

// pass copies bytes between a client and the server.
func (p *commands) pass(client net.Conn) {
	defer client.Close()
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	go io.Copy(client, s)
	in := bufio.NewReader(client)
	for {
		words, raw, err := command(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.count[strings.ToUpper(words[0])]++
		p.mu.Unlock()
		if _, err := io.WriteString(s, raw); err != nil {
			return
		}
	}
}

// command reads one command, an array of strings.
func command(in *bufio.Reader) (words []string, raw string, err error) {
	var b strings.Builder
	number := func(mark byte) int {
		line, e := in.ReadString('\n')
		b.WriteString(line)
		if err = e; err != nil {
			return 0
		}
		n, e := strconv.Atoi(strings.Trim(line, string(mark)+"\r\n"))
		if err = e; err == nil && line[0] != mark {
			err = fmt.Errorf("%q is not a command", line)
		}
		return n
	}
	for n := number('*'); n > 0 && err == nil; n-- {
		size := number('$')
		if err != nil {
			break
		}
		word := make([]byte, size+2)
		if _, err = io.ReadFull(in, word); err == nil {
			b.Write(word)
			words = append(words, string(word[:size]))
		}
	}
	if err == nil && len(words) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return words, b.String(), err
}

// during returns the commands that f has caused, except those by which the client
// maintains its connections.
func (p *commands) during(f func()) map[string]int {
	p.mu.Lock()
	clear(p.count)
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	count := maps.Clone(p.count)
	for _, own := range []string{"PING", "HELLO", "CLIENT"} {
		delete(count, own)
	}
	return count
}

// Each decision is one command, however many limits there are. With reserved units, most
// decisions need no command.
func TestOneRoundTripPerDecision(t *testing.T) {
	t.Parallel()
	p := newCommands(t, server.Start(t).Addr)
	client := connect(t, p.Addr().String())
	var budgets *redis.Store
	if got, want := p.during(func() { budgets = open(t, client, nil) }), (map[string]int{"EVALSHA": 2, "EVAL": 1}); !maps.Equal(got, want) {
		t.Errorf("New: got %v, want %v: the server does not know the script yet", got, want)
	}
	wide := limiter.PerMinute(1_000_000)
	open := func(p headway.Policy) *headway.Transport {
		p.Hosts = []string{"api.test"}
		t2, err := headway.NewTransport(nil, headway.Config{Store: budgets, Secret: []byte("s"), Policies: []headway.Policy{p}})
		if err != nil {
			t.Fatal(err)
		}
		return t2
	}
	wait := func(t *testing.T, tr *headway.Transport, n int) func() {
		q, err := tr.Quota("api.test", "r", "")
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			for range n {
				if err := q.Wait(context.Background(), 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, law := range map[string]limiter.Limit{
		"window":  wide,
		"bucket":  {N: 1_000_000, Per: time.Minute, Law: limiter.Bucket},
		"spaced":  {N: 1_000_000, Per: time.Second, Law: limiter.Spaced},
		"sliding": {N: 1_000_000, Per: time.Minute, Law: limiter.Sliding},
	} {
		t.Run(name, func(t *testing.T) {
			tr := open(headway.Policy{Name: name, Rules: []headway.Rule{{Name: "r", Limit: law}}})
			if got := p.during(wait(t, tr, 200)); got["EVALSHA"] != 200 || len(got) != 1 {
				t.Errorf("200 starts: got %v, want 200 times EVALSHA", got)
			}
		})
	}
	t.Run("lease", func(t *testing.T) {
		tr := open(headway.Policy{Name: "lease", Rules: []headway.Rule{{Name: "r", Limit: wide}}, Store: headway.StorePolicy{Batch: 20}})
		if got := p.during(wait(t, tr, 2000)); got["EVALSHA"] > 2000/20+10 || len(got) != 1 {
			t.Errorf("2000 starts, 20 at a time: got %v, want EVALSHA 100 times and a few", got)
		}
	})
}
