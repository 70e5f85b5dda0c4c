package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// property is what the test reads of a JSON schema.
type property struct {
	Description string
	Properties  map[string]property
}

// row is a value of the chart in the table of its README.
type row struct{ name, fallback, description string }

// rows returns a row for each value, and fails if the schema and values.yaml have different ones.
func rows(t *testing.T, prefix string, schema map[string]property, values map[string]any) []row {
	t.Helper()
	var found []row
	for _, name := range order(t, schema, values) {
		path, described, value := prefix+name, schema[name], values[name]
		inner, isObject := value.(map[string]any)
		switch {
		case described.Properties != nil && isObject:
			found = append(found, rows(t, path+".", described.Properties, inner)...)
		case described.Description == "":
			t.Errorf("%s has no description in values.schema.json", path)
		default:
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			// JSON has `\` doubled; in the table it is as a user writes it.
			fallback := strings.ReplaceAll(strings.Trim(string(text), `"`), `\\`, `\`)
			if fallback != "" {
				fallback = "`" + fallback + "`"
			}
			if len(inner) > 0 {
				fallback = "see `values.yaml`"
			}
			found = append(found, row{path, fallback, described.Description})
		}
	}
	return found
}

// order returns the names of values, sorted.
func order(t *testing.T, schema map[string]property, values map[string]any) []string {
	t.Helper()
	var names []string
	for name := range schema {
		if _, ok := values[name]; ok {
			names = append(names, name)
		} else if name != "global" {
			t.Errorf("values.yaml has no %s", name)
		}
	}
	for name := range values {
		if _, ok := schema[name]; !ok {
			t.Errorf("values.schema.json has no %s", name)
		}
	}
	slices.Sort(names)
	return names
}

// The README of the chart has a table that is made from the schema and the default values. With UPDATE=1 the test writes it.
func TestTheReadmeDescribesEveryValue(t *testing.T) {
	var schema property
	if err := json.Unmarshal([]byte(read(t, "deploy/helm/csi-proxy/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/helm/csi-proxy/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| value | default | |\n|---|---|---|\n")
	for _, row := range rows(t, "", schema.Properties, values) {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", row.name, row.fallback, row.description)
	}
	path := filepath.Join(root, "deploy/helm/csi-proxy/README.md")
	text := read(t, "deploy/helm/csi-proxy/README.md")
	begin := strings.Index(text, "| value |")
	if begin < 0 {
		t.Fatal("the README has no table of values")
	}
	end := begin
	for strings.HasPrefix(text[end:], "|") {
		end += strings.IndexByte(text[end:], '\n') + 1
	}
	wanted := text[:begin] + table.String() + text[end:]
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != wanted {
		t.Error("the table of the README differs from the schema and the values: run `UPDATE=1 go test -run Readme .`")
	}
}

// ownValue has the flags that a value of the chart sets.
var ownValue = []string{"api-groups", "drain", "format-allocation-unit", "format-file-system", "format-writer-sid",
	"iscsi-portals", "kubelet-path", "metrics-bind-address", "require-privacy", "services", "smb-servers", "v", "working-dir"}

// ofService has the flags that only the Windows service uses.
var ofService = []string{"require-safe-folders", "windows-service"}

// A daemon does not start with an unknown flag. With UPDATE=1 the test writes the flags into the schema.
func TestTheSchemaKnowsTheFlagsOfTheDaemon(t *testing.T) {
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(flags(t))), func(name string) bool {
		return slices.Contains(ownValue, name) || slices.Contains(ofService, name)
	})
	wanted := `"^-(` + strings.Join(known, "|") + `)(=[^ \"]*)?$"`
	path := "deploy/helm/csi-proxy/values.schema.json"
	pattern := regexp.MustCompile(`("extraFlags": .*?"pattern": )".*?"( }, "description")`)
	text := read(t, path)
	updated := pattern.ReplaceAllString(text, "${1}"+strings.ReplaceAll(wanted, "$", "$$")+"${2}")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(filepath.Join(root, path), []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != updated {
		t.Error("values.schema.json has other flags than the daemon: run `UPDATE=1 go test -run Schema .`")
	}
	if !strings.Contains(updated, wanted) {
		t.Errorf("the schema has no pattern for extraFlags, which should be %s", wanted)
	}
}
