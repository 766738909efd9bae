package retryafter

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// oracle reads one line of a list with an independent implementation. It is false
// for what has no meaning in our fields: inner lists.
func oracle(line string) (items []httpsfv.Item, ok bool) {
	list, err := httpsfv.UnmarshalList([]string{line})
	if err != nil {
		return nil, false
	}
	for _, m := range list {
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			return nil, false
		}
		items = append(items, item)
	}
	return items, true
}

// paddingLeftOut is true when the oracle refuses a line for base64 without its
// padding, which RFC 9651, section 4.2.7, would have it accept.
func paddingLeftOut(line string) bool {
	_, err := httpsfv.UnmarshalList([]string{line})
	return err != nil && strings.Contains(err.Error(), "base64")
}

// sameList compares our reading of a line with the oracle's.
func sameList(t *testing.T, line string) {
	t.Helper()
	want, ok := oracle(line)
	var got []member
	list := memberList{lines: []string{line}}
	for {
		var m member
		if !list.next(&m) {
			break
		}
		got = append(got, m)
	}
	if list.bad == ok {
		if !(ok == false && paddingLeftOut(line)) {
			t.Fatalf("%q: malformed = %v, the oracle says %v", line, list.bad, !ok)
		}
		return
	}
	if !ok {
		return
	}
	if len(got) != len(want) {
		t.Fatalf("%q: %d members, want %d", line, len(got), len(want))
	}
	for i, m := range got {
		sameItem(t, line, &m.sfItem, want[i].Value)
		for bit, p := range map[uint8]struct {
			key string
			n   int64
		}{hasR: {"r", m.r}, hasT: {"t", m.t}, hasQ: {"q", m.q}, hasW: {"w", m.w}} {
			v, there := want[i].Params.Get(p.key)
			n, whole := v.(int64)
			if there != (m.has&bit != 0) {
				t.Fatalf("%q: parameter %s there = %v, want %v", line, p.key, !there, there)
			}
			if bad := there && (!whole || n < 0); bad != (m.bad&bit != 0) {
				t.Fatalf("%q: parameter %s bad = %v, want %v", line, p.key, !bad, bad)
			} else if there && !bad && n != p.n {
				t.Fatalf("%q: parameter %s = %d, want %d", line, p.key, p.n, n)
			}
		}
	}
}

func sameItem(t *testing.T, line string, got *sfItem, want any) {
	t.Helper()
	switch want := want.(type) {
	case int64:
		if got.kind != sfInteger || got.integer != want {
			t.Fatalf("%q: got kind %d, %d, want integer %d", line, got.kind, got.integer, want)
		}
	case float64:
		if got.kind != sfDecimal {
			t.Fatalf("%q: got kind %d, want a decimal", line, got.kind)
		}
	case string:
		if got.kind != sfString || got.unescape() != want {
			t.Fatalf("%q: got kind %d, %q, want string %q", line, got.kind, got.unescape(), want)
		}
	case httpsfv.Token:
		if got.kind != sfToken || got.text != string(want) {
			t.Fatalf("%q: got kind %d, %q, want token %q", line, got.kind, got.text, want)
		}
	case []byte:
		if got.kind != sfBytes {
			t.Fatalf("%q: got kind %d, want bytes", line, got.kind)
		}
	case bool:
		if got.kind != sfBoolean {
			t.Fatalf("%q: got kind %d, want a boolean", line, got.kind)
		}
	}
}

var structuredLines = []string{
	`"default";r=50;t=30`,
	`"a";r=1, "b";r=2`,
	"\"a\";r=1\t, \t\"b\";r=2",
	`"a"; r=1;  t=2`,
	`"a" ;r=1`,
	`"a";r =1`,
	`"a";r= 1`,
	`"a";r=1,`,
	`"a";r=1,,"b"`,
	`,"a"`,
	`"a`,
	`"a\"b";r=1`,
	`"a\\";r=1`,
	`"a\x";r=1`,
	`"é";r=1`,
	"\"a\x00\";r=1",
	`a;r=1`,
	`*a/b:c;r=1`,
	`a/b%c|d`,
	`"a";r`,
	`"a";r;r=2`,
	`"a";r=-1`,
	`"a";r=+1`,
	`"a";r=1.5`,
	`"a";r=1.`,
	`"a";r=1.2345`,
	`"a";r=123456789012.123`,
	`"a";r=1234567890123.1`,
	`"a";r=999999999999999`,
	`"a";r=9999999999999999`,
	`"a";r=0001`,
	`"a";r=--1`,
	`"a";r=-`,
	`"a";R=1`,
	`"a";_r=1`,
	`"a";*r=1`,
	`"a";r.x-y_z*=1`,
	`"a";pk=:cHsdsRa894==:`,
	`"a";pk=::`,
	`"a";pk=:Y:`,
	`"a";pk=:YW:`,
	`"a";pk=:YWI:`,
	`"a";pk=:YWI=:`,
	`"a";pk=:YW==:`,
	`"a";pk=:us er:`,
	`"a";pk=:Y=W=:`,
	`"a";pk=:YWJj====:`,
	`"a";pk=:YWJj`,
	`"a";x=?1;y=?0`,
	`"a";x=?2`,
	`"a";x=?`,
	`"a";x=@1659578233`,
	`"a";x=@1.5`,
	`"a";x=@`,
	`"a";x=%"f%c3%bc"`,
	`"a";x=%"f%C3%BC"`,
	`"a";x=%"f%c3"`,
	`"a";x=%"%c3a"`,
	`"a";x=%"a`,
	`"a";x=%a`,
	`("a" "b");r=1`,
	`()`,
	`100;w=60`,
	`100, 200;w=5`,
	`1.5;w=1`,
	`"fixed window";"api";q=500;w=300`,
	``,
	`   `,
	` "a"`,
	`"a"  `,
}

// TestStructuredOracle compares our strict subset of structured fields, line by
// line, with github.com/dunglas/httpsfv.
func TestStructuredOracle(t *testing.T) {
	for _, line := range structuredLines {
		sameList(t, line)
	}
}

// TestStructuredOracleRandom does the same with lines that are put together from
// pieces of such fields, most of them wrong somewhere.
func TestStructuredOracleRandom(t *testing.T) {
	pieces := []string{
		`"a"`, `"b c"`, `"`, `\`, `\"`, `;`, `;`, `; `, `=`, `,`, `, `, ` `, "\t", `r`, `t`, `q`, `w`, `pk`, `qu`,
		`r=1`, `t=20`, `;r=3`, `;t=4`, `;q=100`, `;w=60`, `0`, `7`, `-`, `+`, `.`, `1.5`, `999999999999999`,
		`:YWI=:`, `:`, `?1`, `?`, `@1`, `%"a"`, `%`, `(`, `)`, `*`, `A`, `é`, "\x7f", `token`,
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 200_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(9) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		line := b.String()
		if trim(line) != strings.Trim(line, " ") {
			continue // a tab at the end of a line never reaches us from net/http
		}
		if _, ok := oracle(line); ok {
			valid++
		}
		sameList(t, line)
	}
	if valid < 1000 {
		t.Errorf("only %d valid lines: the pieces say too little", valid)
	}
}

// TestDictionaryOracle reads dictionaries of draft 07 as the oracle does.
func TestDictionaryOracle(t *testing.T) {
	pieces := []string{
		`limit=100`, `remaining=50`, `reset=5`, `remaining`, `limit=1.5`, `limit="a"`, `limit=-1`, `x=1`, `x`, `y=?1;z`,
		`, `, `,`, ` ,`, ` `, `;w=60`, `;`, `=`, `limit`, `reset=`, `(1 2)`, `*k=tok/en`,
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range 100_000 {
		var b strings.Builder
		for i := range 1 + rnd.IntN(9) {
			if i%2 == 1 && rnd.IntN(4) > 0 {
				b.WriteString(", ")
				continue
			}
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		line := b.String()
		r := reading{sig: new(Signal)}
		ok := r.dictionary([]string{line})
		want, wantOK := dictionaryOracle(line)
		if ok != wantOK {
			t.Fatalf("%q: ok = %v, want %v", line, ok, wantOK)
		}
		got, _ := r.sig.Binding()
		if ok && got != want {
			t.Fatalf("%q: got %+v, want %+v", line, got, want)
		}
		if ok && got != (LimitSignal{}) {
			read++
		}
	}
	if read < 1000 {
		t.Errorf("only %d dictionaries were read", read)
	}
}

func dictionaryOracle(line string) (l LimitSignal, ok bool) {
	dict, err := httpsfv.UnmarshalDictionary([]string{line})
	if err != nil {
		return l, false
	}
	for _, key := range dict.Names() {
		m, _ := dict.Get(key)
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			return l, false // an inner list
		}
		n, whole := item.Value.(int64)
		if key != "limit" && key != "remaining" && key != "reset" {
			continue
		}
		if !whole || n < 0 {
			return l, false
		}
		switch key {
		case "limit":
			l.Limit, l.HasLimit = n, true
		case "remaining":
			l.Remaining, l.HasRemaining = n, true
		case "reset":
			l.Reset, l.HasReset, l.Coarse = span(uint64(n), 0, second), true, true
		}
	}
	return l, l != LimitSignal{} || strings.Trim(line, " ") == ""
}

// TestStructuredCutAtEveryByte: what is left of a valid field is read as the
// oracle reads it.
func TestStructuredCutAtEveryByte(t *testing.T) {
	for _, line := range structuredLines {
		for i := range line {
			if cut := line[:i]; trim(cut) == strings.Trim(cut, " ") {
				sameList(t, cut)
			}
		}
	}
}

// FuzzStructured compares our reading of a list with the oracle's.
func FuzzStructured(f *testing.F) {
	for _, line := range structuredLines {
		f.Add(line)
	}
	for _, line := range corpusValues(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > maxLong || trim(line) != strings.Trim(line, " ") || invalidUTF8InDisplay(line) {
			return
		}
		sameList(t, line)
	})
}

// invalidUTF8InDisplay is true for lines in which the oracle takes a byte above
// 0x7e in a display string for a printable rune, which RFC 9651 forbids.
func invalidUTF8InDisplay(line string) bool {
	return strings.Contains(line, `%"`) && slices.ContainsFunc([]byte(line), func(c byte) bool { return c > 0x7e })
}

// TestStructuredAllOrNothing: one bad member spoils RateLimit, but not the policies.
func TestStructuredAllOrNothing(t *testing.T) {
	for _, bad := range []string{`"b"`, `"b";r=x`, `"b";r=1.0`, `"b";r=-1`, `"b";r=1;t=-1`, `"b";r=1;t="5"`, `b;r=1`, `5;r=1`, `"b";r=1;r`} {
		for _, line := range []string{`"a";r=5;t=9, ` + bad, bad + `, "a";r=5;t=9`} {
			r := reading{sig: new(Signal)}
			if r.structured([]string{line}) || r.sig.n != 0 {
				t.Errorf("%q: read as %+v", line, r.sig.Limits())
			}
		}
		r := reading{sig: new(Signal)}
		if r.structured([]string{`"a";r=5;t=9`, bad}) || r.sig.n != 0 {
			t.Errorf("%q on a line of its own: read as %+v", bad, r.sig.Limits())
		}
	}
	r := reading{sig: new(Signal)}
	if !r.structured([]string{`"a";r=5;t=9`, `"b";r=4`}) || r.sig.n != 2 {
		t.Errorf("a valid field on two lines: %+v", r.sig.Limits())
	}
}
