package retryafter

// whose finds out what each limit is of and what happens at its reset, and which resource
// a refusal is about. global is true if the response says that it is about none.
func (r *reading) whose(global bool) {
	s := r.sig
	named := ""
	if r.seen&(markBucket|markResource) != 0 && !global {
		named = r.named()
	}
	for i := range s.Limits() {
		l := &s.limits[i]
		if r.rows[i] == policiesOnly {
			continue
		}
		row := table[r.rows[i]]
		l.explain(row, r.conv)
		if named != "" && row == &xRateLimitRow {
			l.Resource = named
		}
	}
	if !s.Throttled || global || s.Scope == ScopeRequest {
		return
	}
	exhausted, counted := 0, false
	for i := range s.Limits() {
		l := &s.limits[i]
		counted = counted || l.HasRemaining
		if !l.exhausted() {
			continue
		}
		if exhausted++; exhausted > 1 && l.Resource != s.Resource {
			s.Resource = "" // all that they have in common is the identity
			return
		}
		s.Resource = l.Resource
	}
	switch {
	case exhausted > 0:
	case s.Scope == ScopeRule && named != "":
		s.Resource = named
	case s.Scope == ScopeRule, r.conv.perPath && !counted:
		s.Resource = PerRoute
	}
}

// named returns the resource or bucket that the response names.
func (r *reading) named() string {
	key := "X-Ratelimit-Resource"
	if r.seen&markResource == 0 {
		key = "X-Ratelimit-Bucket"
	}
	if v := r.line(key); printable(v) {
		return v
	}
	return ""
}

// explain notes what a row that has read l, and the conventions that held, say about the
// limit as such.
func (l *LimitSignal) explain(row, conv *builtin) {
	ours := conv.set&row.own != 0
	if l.HasReset && l.Resets == ResetUnknown {
		if l.Resets = row.resets; l.Resets == ResetUnknown && ours {
			l.Resets = conv.resets
		}
	}
	if l.Resource == "" && (row.perPath || ours && conv.perPath) {
		l.Resource = PerRoute
	}
}
