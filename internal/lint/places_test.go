package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// registries are the hosts that serve packages. Which of them is asked is the
// machine's own affair, so no file names one; nor does this one, at a glance.
var registries = []string{
	"proxy." + "golang.org",
	"sum." + "golang.org",
	"index." + "golang.org",
	"goproxy." + "io",
	"goproxy." + "cn",
	"registry." + "npmjs.org",
	"registry." + "yarnpkg.com",
	"deb." + "debian.org",
	"security." + "debian.org",
	"archive." + "ubuntu.com",
	"pypi." + "org",
	"files." + "pythonhosted.org",
	"static." + "crates.io",
	"repo.maven." + "apache.org",
	"docker." + "io",
}

// machinePath matches an absolute path to where one machine keeps its work.
var machinePath = regexp.MustCompile(`(^|[^\w.~/-])/(work|root|home|tmp|Users)/`)

// checkPlaces complains about hosts and paths that not every machine has.
func checkPlaces(tree fs.FS) ([]string, error) {
	var complaints []string
	err := walk(tree, func(name string, data []byte) error {
		if bytes.IndexByte(data, 0) >= 0 {
			return nil // no text
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			for _, host := range registries {
				if strings.Contains(line, host) {
					complaints = append(complaints, fmt.Sprintf("%s:%d: names the registry %s", name, n, host))
				}
			}
			if machinePath.MatchString(line) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: names a path of one machine", name, n))
			}
		}
		return nil
	})
	return complaints, err
}

func TestPlaces(t *testing.T) { check(checkPlaces).passes(t) }

func TestPlacesCheck(t *testing.T) {
	c := check(checkPlaces)
	for _, host := range registries {
		c.says(t, map[string]string{".ci/run": "#!/bin/sh\n# from " + host + "/x\n"},
			".ci/run:2: names the registry "+host)
	}
	const slash = "/"
	for _, dir := range []string{"work", "root", "home", "tmp", "Users"} {
		bad := slash + dir + slash
		for _, line := range []string{bad + "x", "cd " + bad, `"` + bad + `x"`, "(" + bad + ")", "=" + bad} {
			c.says(t, map[string]string{"x/testdata/y": "\n" + line}, "x/testdata/y:2: names a path of one machine")
		}
		for _, line := range []string{"example.com" + bad, "a" + bad, "." + bad, slash + dir + "s/", slash + dir} {
			c.says(t, map[string]string{"x/testdata/y": line})
		}
	}
}
