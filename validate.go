package headway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/headway-go/headway/internal/match"
)

// validatePolicies returns all mistakes in the policies, joined. Each names the policy,
// the field, its value, and what would be right.
func validatePolicies(policies []Policy) error {
	var v validator
	names := map[string]int{} // to the policy that has the name
	hosts := match.NewHostTable()
	for i := range policies {
		p := &policies[i]
		name := p.name()
		v.at = fmt.Sprintf("Policies[%d] %q", i, name)
		if other, taken := names[name]; taken && name != "" {
			v.add("Name = %q: want another, Policies[%d] has this one", name, other)
		}
		names[name] = i

		if len(p.Hosts) == 0 {
			v.add(`Hosts is empty: want at least one, such as "api.example.com", or "*" for every host`)
		}
		for j, pattern := range p.Hosts {
			// The same pattern twice in one policy is redundant, and no mistake.
			if other, err := hosts.Add(pattern, i); err != nil {
				v.add("Hosts[%d] = %q: %w", j, pattern, err)
			} else if other >= 0 && other != i {
				v.add("Hosts[%d] = %q: want it in one policy only, Policies[%d] has it too", j, pattern, other)
			}
		}

		v.must(p.MaxWait >= 0 || p.MaxWait == NoWait || p.MaxWait == OneWindow || p.MaxWait == WaitForever, "MaxWait = %v: want a positive duration, NoWait, OneWindow, or zero for no bound", p.MaxWait)
		v.must(p.MaxWaiting >= 0, "MaxWaiting = %d: want a positive number, or zero for 10,000", p.MaxWaiting)
		v.must(p.MaxInFlight >= 0, "MaxInFlight = %d: want a positive number, or zero for no cap", p.MaxInFlight)
		v.must(p.AttemptTimeout >= 0, "AttemptTimeout = %v: want a positive duration, or zero for none", p.AttemptTimeout)
		if p.Breaker != nil {
			v.each("Breaker", p.Breaker.Validate())
		}
		v.must(p.Refusal <= RefuseWithResponse, "Refusal = %d: want RefuseWithError or RefuseWithResponse", p.Refusal)
		v.must(p.Server.MaxPause >= 0, "Server.MaxPause = %v: want a positive duration, or zero for 24 h", p.Server.MaxPause)
		v.must(p.Server.Learn <= LearnOff, "Server.Learn = %d: want LearnLower, LearnPace or LearnOff", p.Server.Learn)
		v.must(p.Store.Down <= StoreDownAdmit, "Store.Down = %d: want StoreDownLocal, StoreDownRefuse or StoreDownAdmit", p.Store.Down)
		v.must(p.Store.Batch >= 0, "Store.Batch = %d: want a positive number, or zero for one start per round trip", p.Store.Batch)
		v.must(p.Store.Share >= 0 && p.Store.Share <= 1, "Store.Share = %v: want more than 0 and at most 1, or zero for 1/4", p.Store.Share)
		for i, d := range p.Server.Dialects {
			v.must(d != nil, "Server.Dialects[%d] is nil: want a dialect of package retryafter, or your own", i)
		}
		v.rules(p)
	}
	return errors.Join(v.errs...)
}

type validator struct {
	at   string // the policy that is checked
	errs []error
}

func (v *validator) add(format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("headway: %s: "+format, append([]any{v.at}, args...)...))
}

func (v *validator) must(ok bool, format string, args ...any) {
	if !ok {
		v.add(format, args...)
	}
}

func (v *validator) rules(p *Policy) {
	names := map[string]string{} // to the field that has the name
	for i, l := range p.Limits {
		field := fmt.Sprintf("Limits[%d]", i)
		v.each(field, l.Validate())
		if other, taken := names[l.String()]; taken {
			v.add("%s = %q: want each limit once, %s is the same", field, l, other)
		}
		names[l.String()] = field
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		field := fmt.Sprintf("Rules[%d]", i)
		if r.Name == "" {
			v.add("%s.Name is empty: want a name that no other rule of the policy has", field)
		} else if other, taken := names[r.Name]; taken {
			v.add("%s.Name = %q: want another, %s has this one", field, r.Name, other)
		}
		names[r.Name] = field
		v.each(field+".Limit", r.Limit.Validate())
		v.announced(field, p.Rules[:i], r)
		for j, m := range r.Methods {
			if want := rightMethod(m); want != "" {
				v.add("%s.Methods[%d] = %q: want %s", field, j, m, want)
			}
		}
		if r.Path != "" {
			if _, err := match.New(nil, r.Path); err != nil {
				v.add("%s.Path = %q: %w", field, r.Path, err)
			}
		}
	}
}

// announced checks the Announced of a rule, which comes after others in its policy.
func (v *validator) announced(field string, others []Rule, r *Rule) {
	if strings.ContainsFunc(r.Announced, unicode.IsControl) {
		v.add("%s.Announced = %q: want the label of a limit, without control characters", field, r.Announced)
	}
	for i := range others {
		o := &others[i]
		if r.Announced != "" && strings.EqualFold(o.Announced, r.Announced) &&
			slices.Equal(o.Methods, r.Methods) && o.Path == r.Path && sameFunc(o.Key, r.Key) {
			v.add("%s.Announced = %q: want another, Rules[%d] has this one for the same requests", field, r.Announced, i)
		}
	}
}

// each adds the errors of a Validate one by one.
func (v *validator) each(field string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			v.add("%s: %w", field, err)
		}
	} else if err != nil {
		v.add("%s: %w", field, err)
	}
}

// rightMethod returns what to write instead of a method that no request can have or
// that is a probable typo; "" if the method is right.
func rightMethod(m string) string {
	for _, c := range []byte(m) {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return `one method, such as "GET"`
		}
	}
	switch upper := strings.ToUpper(m); upper {
	case m:
		if m == "" {
			return `one method, such as "GET"`
		}
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return fmt.Sprintf("%q, methods compare with case", upper)
	}
	return ""
}
