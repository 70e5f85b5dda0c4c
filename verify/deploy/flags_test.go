package deploy

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
)

// flags returns the names of the daemon's flags. A test of crates/csi-proxy compares its README with the table of flags.
func flags(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `-([a-z_-]+)[ `]").FindAllStringSubmatch(read(t, "crates/csi-proxy/README.md"), -1) {
		names[match[1]] = true
	}
	if len(names) < 15 || !names["drain"] || !names["require-safe-folders"] {
		t.Fatalf("the README of crates/csi-proxy has other tables than expected: %v", names)
	}
	return names
}

// name returns the name of the flag in an argument such as "-drain=4".
func name(argument string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
	return name
}

func TestEveryFlagOfTheManifestsExists(t *testing.T) {
	known := flags(t)
	for rendering, objects := range renderings(t) {
		arguments := only[*apps.DaemonSet](t, objects).Spec.Template.Spec.Containers[0].Args
		if len(arguments) < 3 {
			t.Errorf("%s: arguments %v", rendering, arguments)
		}
		for _, argument := range arguments {
			if !strings.HasPrefix(argument, "-") || !known[name(argument)] {
				t.Errorf("%s: csi-proxy has no flag %s", rendering, argument)
			}
		}
	}
}

// Flags that other programs have, in the documents.
var foreign = map[string]bool{
	"k": true, "f": true, "n": true, "l": true, "o": true, // kubectl, helm, docker
}

// The documents name flags between backticks.
func TestEveryFlagOfTheDocumentsExists(t *testing.T) {
	known := flags(t)
	span := regexp.MustCompile("`-([a-z][a-z_-]*)[=` ]")
	found := 0
	for _, path := range []string{"deploy/README.md", "deploy/helm/csi-proxy/README.md", "deploy/helm/csi-proxy/values.schema.json"} {
		for _, match := range span.FindAllStringSubmatch(read(t, path), -1) {
			found++
			if !known[match[1]] && !foreign[match[1]] {
				t.Errorf("%s: csi-proxy has no flag -%s", path, match[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d flags found in the documents", found)
	}
}

// xtask/tests/powershell.rs parses the scripts.
func TestTheScriptsUseFlagsThatExistAndDownloadNothing(t *testing.T) {
	known := flags(t)
	scripts, err := filepath.Glob(deployment + "/windows/*.ps*1")
	if err != nil || len(scripts) != 5 {
		t.Fatalf("scripts %v: %v", scripts, err)
	}
	used := map[string]bool{}
	// Flags of csi-proxy have lower-case names with a hyphen or an underscore, or are the two for the log.
	flag := regexp.MustCompile(`[\s"']-(require-[a-z-]+|log_[a-z_]+|logtostderr|windows-service|drain)\b`)
	download := regexp.MustCompile(`(?i)Invoke-WebRequest|Invoke-RestMethod|\b(iwr|irm|curl|wget)\b|WebClient|BitsTransfer|https?:|Invoke-Expression|\biex\b`)
	for _, path := range scripts {
		text := read(t, "deploy/windows/"+filepath.Base(path))
		for _, match := range flag.FindAllStringSubmatch(text, -1) {
			used[match[1]] = true
			if !known[match[1]] {
				t.Errorf("%s: csi-proxy has no flag -%s", path, match[1])
			}
		}
		if found := download.FindString(text); found != "" {
			t.Errorf("%s: %s", path, found)
		}
		for _, line := range []string{"Set-StrictMode -Version Latest\n", "$ErrorActionPreference = 'Stop'\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: %s is missing", path, line)
			}
		}
	}
	expect(t, "flags that the scripts use", slices.Sorted(maps.Keys(used)),
		[]string{"drain", "log_file", "logtostderr", "require-safe-folders"})
}
