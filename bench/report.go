package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// report writes the result of a row as Markdown.
func (r *result) report(w io.Writer) {
	fmt.Fprintf(w, "### %s\n\n%s (GOMAXPROCS %d, passes %d)\n\n", r.row.name, r.row.about, r.row.procs, r.passes)
	base := r.floor()
	head, rule := "| |", "|---|"
	for _, m := range r.row.metrics {
		head, rule = head+" "+m.name+" |", rule+"---:|"
		if m.ratio {
			head, rule = head+" x floor (half of the passes) |", rule+"---:|"
		}
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for _, s := range r.row.subjects {
		name := s.name
		if s.kind == ours {
			name = "**" + name + "**"
		}
		fmt.Fprintf(w, "| %s |", name)
		for _, m := range r.row.metrics {
			v := r.value(s.name, m.name)
			fmt.Fprintf(w, " %s |", number(summarize(v).median, m.digits))
			if m.ratio {
				fmt.Fprintf(w, " %s |", spread(summarize(ratios(v, r.value(base, m.name))), 2))
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, g := range r.row.goals {
		v := r.judge(g)
		fmt.Fprintf(w, "- %s: %s %s; wanted %s: %s.\n", g.subject, spread(v.got, v.digits), v.unit, v.wanted, v.word)
	}
	for _, line := range r.winners() {
		fmt.Fprintf(w, "- %s.\n", line)
	}
	fmt.Fprintln(w)
}

// writeSummary writes a line for each goal.
func writeSummary(w io.Writer, results []*result) {
	fmt.Fprint(w, "| row | ours | got | wanted | | best peer |\n|---|---|---:|---:|---|---|\n")
	for _, r := range results {
		for _, g := range r.row.goals {
			v := r.judge(g)
			fmt.Fprintf(w, "| %s | %s | %s %s | %s | %s | %s |\n", r.row.name, g.subject,
				number(v.got.median, v.digits), v.unit, v.wanted, v.word, r.best(g))
		}
	}
	fmt.Fprintln(w)
}

func (r *result) floor() string {
	for _, s := range r.row.subjects {
		if s.kind == floor {
			return s.name
		}
	}
	return ""
}

func (r *result) metric(name string) metric {
	for _, m := range r.row.metrics {
		if m.name == name {
			return m
		}
	}
	panic("row " + r.row.name + " has no metric " + name)
}

// A verdict says whether a goal is reached, after rounding to the digits that are shown.
type verdict struct {
	got          summary
	digits       int
	unit, wanted string
	word         string
}

func (r *result) judge(g goal) verdict {
	m := r.metric(g.metric)
	v := verdict{got: summarize(r.got(g.subject, g)), digits: m.digits, unit: m.name, word: "**missed**"}
	if g.of != "" {
		v.digits, v.unit = 2, m.name+" x "+g.of
	}
	sign, less := "≤ ", g.factor-round(v.got.median, v.digits)
	if m.more {
		sign, less = "≥ ", -less
	}
	if v.wanted = sign + number(g.factor, v.digits); less >= -1e-9 {
		v.word = "reached"
	}
	return v
}

// got returns the values that a goal is about, pass by pass.
func (r *result) got(name string, g goal) []float64 {
	v := r.value(name, g.metric)
	if g.of == "" {
		return v
	}
	return ratios(v, r.value(g.of, g.metric))
}

// best returns the name of the peer that is best in a goal's metric.
func (r *result) best(g goal) string {
	m := r.metric(g.metric)
	name, best := "", math.NaN()
	for _, s := range r.row.subjects {
		if s.kind != peer {
			continue
		}
		got := summarize(r.got(s.name, g)).median
		if math.IsNaN(best) || m.more && got > best || !m.more && got < best {
			name, best = s.name, got
		}
	}
	if math.IsNaN(best) {
		return ""
	}
	return name + ": " + number(best, r.judge(g).digits)
}

// winners returns the names of the peers that are better than Headway by more than 1 %.
func (r *result) winners() []string {
	var lines []string
	for _, us := range r.row.subjects {
		for _, m := range r.row.metrics {
			for _, them := range r.row.subjects {
				if us.kind != ours || them.kind != peer || m.neutral {
					continue
				}
				a, b := r.value(them.name, m.name), r.value(us.name, m.name)
				their, our := round(summarize(a).median, m.digits), round(summarize(b).median, m.digits)
				if m.more {
					their, our, a, b = our, their, b, a
				}
				if their < our*0.99 {
					lines = append(lines, fmt.Sprintf("**%s wins** over %s: %s: %s of ours", them.name, us.name, m.name,
						number(summarize(ratios(r.value(them.name, m.name), r.value(us.name, m.name))).median, 2)))
				}
			}
		}
	}
	return lines
}

func spread(s summary, digits int) string {
	if s.low == s.high || math.IsNaN(s.median) {
		return number(s.median, digits)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.median, digits), number(s.low, digits), number(s.high, digits))
}

func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

// number formats x with the given digits after the point, and separated thousands.
func number(x float64, digits int) string {
	if math.IsNaN(x) {
		return "–"
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(x), 'f', digits, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if x < 0 {
		whole = "-" + whole
	}
	return whole
}
