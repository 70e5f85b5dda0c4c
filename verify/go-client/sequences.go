package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A driver is what one CSI driver calls, in its own order.
type driver struct {
	name      string
	variables map[string]string
	phases    []phase
}

// A phase is one call of kubelet to the driver.
type phase struct {
	name  string
	calls []step
}

// sequenceFile is a file of sim/csi-proxy-sim/drivers; src/demo/sequence.rs beside it describes the format.
type sequenceFile struct {
	Driver    string                       `json:"driver"`
	About     string                       `json:"about"`
	Variables map[string]string            `json:"variables"`
	Parts     map[string][]json.RawMessage `json:"parts"`
	Phases    []struct {
		Name  string            `json:"name"`
		Steps []json.RawMessage `json:"steps"`
	} `json:"phases"`
}

// stepKeys are the keys that a step may have beside "note", by the key that determines its kind.
var stepKeys = map[string][]string{
	"part":  {},
	"call":  {"request", "want", "keep", "find", "fails"},
	"as":    {"do", "path", "data", "want", "contains", "disk", "keep"},
	"check": {"disk", "path", "target", "bytes", "requested", "remotes"},
}

// readDrivers reads the sequences of a folder, in the order in which they run on one node.
func readDrivers(folder string) ([]driver, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no sequences of drivers in %s", folder)
	}
	slices.Sort(files)
	var drivers []driver
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d, err := parseDriver(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		drivers = append(drivers, d)
	}
	return drivers, nil
}

func parseDriver(text []byte) (driver, error) {
	var file sequenceFile
	if err := strict(text, &file); err != nil {
		return driver{}, err
	}
	d := driver{name: file.Driver, variables: file.Variables}
	known := map[string]bool{}
	for name := range file.Variables {
		known[name] = true
	}
	for _, p := range file.Phases {
		var calls []step
		for _, raw := range p.Steps {
			steps, err := parseSteps(raw, file.Parts)
			if err != nil {
				return driver{}, fmt.Errorf("%s, step %s: %w", p.Name, raw, err)
			}
			for _, s := range steps {
				for _, name := range variable.FindAllString(s.request+s.want, -1) {
					if !known[name[1:]] {
						return driver{}, fmt.Errorf("%s: unknown variable %s", p.Name, name)
					}
				}
				for name := range s.keep {
					known[name] = true
				}
				if s.find != nil {
					known[s.find.Keep] = true
				}
			}
			calls = append(calls, steps...)
		}
		d.phases = append(d.phases, phase{p.Name, calls})
	}
	return d, nil
}

// parseSteps returns the RPCs that a step of a file stands for. A step that only the simulator can do has none.
func parseSteps(raw json.RawMessage, parts map[string][]json.RawMessage) ([]step, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	delete(fields, "note")
	for kind, keys := range stepKeys {
		if _, ok := fields[kind]; !ok {
			continue
		}
		for key := range fields {
			if key != kind && !slices.Contains(keys, key) {
				return nil, fmt.Errorf("unknown key %q", key)
			}
		}
		switch kind {
		case "part":
			return parsePart(fields, parts)
		case "call":
			return parseCall(raw)
		case "as":
			return actionByRPC(raw)
		case "check":
			return checkByRPC(raw)
		}
	}
	return nil, fmt.Errorf("neither a call, an action, a check nor a part")
}

func parsePart(fields map[string]json.RawMessage, parts map[string][]json.RawMessage) ([]step, error) {
	var name string
	if err := json.Unmarshal(fields["part"], &name); err != nil {
		return nil, err
	}
	part, ok := parts[name]
	if !ok {
		return nil, fmt.Errorf("unknown part %q", name)
	}
	var all []step
	for _, raw := range part {
		steps, err := parseSteps(raw, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
	}
	return all, nil
}

func parseCall(raw json.RawMessage) ([]step, error) {
	var file struct {
		Call    string            `json:"call"`
		Note    string            `json:"note"`
		Request json.RawMessage   `json:"request"`
		Want    json.RawMessage   `json:"want"`
		Keep    map[string]string `json:"keep"`
		Find    *entry            `json:"find"`
		Fails   *string           `json:"fails"`
	}
	if err := strict(raw, &file); err != nil {
		return nil, err
	}
	at := strings.LastIndex(file.Call, "/")
	if at < 0 {
		return nil, fmt.Errorf("unknown RPC %q", file.Call)
	}
	s := step{api: file.Call[:at], rpc: file.Call[at+1:], request: "{}", want: string(file.Want), keep: file.Keep, find: file.Find}
	if file.Request != nil {
		s.request = string(file.Request)
	}
	if file.Fails != nil {
		s.failing = regexp.MustCompile(regexp.QuoteMeta(*file.Fails))
	}
	return []step{s}, nil
}

// actionByRPC returns the RPC with which this client performs an action of kubelet or of a container on the node.
func actionByRPC(raw json.RawMessage) ([]step, error) {
	var action struct{ Do, Path string }
	if err := json.Unmarshal(raw, &action); err != nil {
		return nil, err
	}
	switch action.Do {
	case "MkdirAll":
		return []step{ofFiles("Mkdir", object("path", action.Path))}, nil
	case "WriteFile", "ReadFile", "ReadDir", "Readlink", "Lstat", "GetDiskFreeSpaceEx", "GrowDisk":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown action %q", action.Do)
}

// checkByRPC returns the RPC with which this client checks a state of the node, as far as RPCs report it.
func checkByRPC(raw json.RawMessage) ([]step, error) {
	var check struct{ Check, Path, Disk string }
	if err := json.Unmarshal(raw, &check); err != nil {
		return nil, err
	}
	switch check.Check {
	case "staged", "link":
		return []step{ofFiles("IsSymlink", object("path", check.Path)).wants(`{"isSymlink":true}`)}, nil
	case "unstaged", "absent":
		return []step{ofFiles("PathExists", object("path", check.Path)).wants(`{"exists":false}`)}, nil
	case "online", "offline":
		want := fmt.Sprintf(`{"isOnline":%t}`, check.Check == "online")
		return []step{ofDisk("GetDiskState", object("diskNumber", check.Disk)).wants(want)}, nil
	case "formatted-once", "no-disk", "fills-disk", "size-at-least", "size-in-gib", "below-size-in-gib", "mappings", "mappings-encrypted":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown check %q", check.Check)
}

// object returns a JSON object with one field.
func object(name, value string) string {
	text, _ := json.Marshal(map[string]string{name: value})
	return string(text)
}

// strict decodes JSON in which every key must be known.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
