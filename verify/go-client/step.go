package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// A step is one RPC and what its answer must be.
type step struct {
	api     string // "disk/v1"
	rpc     string
	request string // protobuf's JSON; $name is replaced by a variable

	want    string            // JSON that the response must contain, as contains compares
	keep    map[string]string // variable -> path into the response, such as "volumeIds.0"
	find    *entry
	failing *regexp.Regexp // the call must fail with an error that matches
	feature string         // the feature that the system must have for the step
}

// An entry is looked up in a map of the response, as drivers look for their disk; its key is kept in a variable.
type entry struct {
	Keep  string            `json:"keep"`
	In    string            `json:"in"`
	Field string            `json:"field"` // "page83", or "identifiers.*" for all values of a map
	Value map[string]string `json:"value"` // one of equals, contains, starts_with and last_word
	Keys  []string          `json:"keys"`  // the only keys that the map of Field may have
}

func call(api, rpc, request string) step { return step{api: api, rpc: rpc, request: request} }

// in returns a function that makes steps of one group-version.
func in(api string) func(rpc, request string) step {
	return func(rpc, request string) step { return call(api, rpc, request) }
}

var (
	ofDisk   = in("disk/v1")
	ofFiles  = in("filesystem/v1")
	ofVolume = in("volume/v1")
)

func (s step) wants(response string) step { s.want = response; return s }

func (s step) keeps(name, path string) step {
	s.keep = map[string]string{name: path}
	return s
}

// fails makes the step expect an error that matches the pattern.
func (s step) fails(pattern string) step { s.failing = regexp.MustCompile(pattern); return s }

// needs skips the step on a system without a feature, by its name in xtask/src/wine/probe.c.
func (s step) needs(feature string) step { s.feature = feature; return s }

// lacks lists the features that the system of the daemon lacks: none on Windows; for Wine, the probe detects them.
var lacks = strings.Fields(os.Getenv("CSI_PROXY_WINE_LACKS"))

// A session holds the connections and the variables.
type session struct {
	open   map[string]func() (any, error)
	opened map[string]reflect.Value
	vars   map[string]string
	called map[string]bool // "disk/v1 Rescan": whether the daemon answered, even with an error
}

func newSession(open map[string]func() (any, error), variables map[string]string) *session {
	return &session{open: open, opened: map[string]reflect.Value{}, vars: maps.Clone(variables), called: map[string]bool{}}
}

// do calls the RPC and checks the result, which it returns in a few words.
func (s *session) do(t step) (string, error) {
	answer, err := s.call(t)
	switch {
	case unanswered(err):
		return "", err
	case t.failing != nil && err == nil:
		return "", fmt.Errorf("must fail with /%s/, but returned %s", t.failing, brief(answer))
	case t.failing != nil && !t.failing.MatchString(err.Error()):
		return "", fmt.Errorf("must fail with /%s/, but failed with: %w", t.failing, err)
	case t.failing != nil:
		return "refused, as expected: " + err.Error(), nil
	case err != nil:
		return "", err
	}
	if t.want != "" {
		var want any
		if err := json.Unmarshal([]byte(s.fill(t.want)), &want); err != nil {
			return "", fmt.Errorf("the expected response %s: %w", t.want, err)
		}
		if err := contains(answer, want, ""); err != nil {
			return "", fmt.Errorf("%w in %s", err, brief(answer))
		}
	}
	for name, path := range t.keep {
		value, err := at(answer, path)
		if err != nil {
			return "", fmt.Errorf("%w in %s", err, brief(answer))
		}
		s.vars[name] = value
	}
	if t.find != nil {
		if err := s.lookUp(answer, t.find); err != nil {
			return "", err
		}
	}
	return brief(answer), nil
}

func (s *session) client(api string) (reflect.Value, error) {
	if client, ok := s.opened[api]; ok {
		return client, nil
	}
	open, ok := s.open[api]
	if !ok {
		return reflect.Value{}, status.Errorf(codes.Unimplemented, "the published client has no %s", api)
	}
	client, err := open()
	if err != nil {
		return reflect.Value{}, status.Errorf(codes.Unavailable, "cannot open %s: %v", api, err)
	}
	s.opened[api] = reflect.ValueOf(client)
	return s.opened[api], nil
}

// call sends the request with the method of the published client and returns the response as decoded JSON.
func (s *session) call(t step) (any, error) {
	client, err := s.client(t.api)
	if err != nil {
		return nil, err
	}
	method := client.MethodByName(t.rpc)
	if !method.IsValid() {
		return nil, status.Errorf(codes.Unimplemented, "the published client of %s has no %s", t.api, t.rpc)
	}
	request := reflect.New(method.Type().In(1).Elem())
	if err := protojson.Unmarshal([]byte(s.fill(t.request)), message(request)); err != nil {
		return nil, status.Errorf(codes.Canceled, "not sent, %s is not a request of this RPC: %v", t.request, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), request})
	err, _ = results[1].Interface().(error)
	s.called[t.api+" "+t.rpc] = s.called[t.api+" "+t.rpc] || !unanswered(err)
	if err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(message(results[0]))
	if err != nil {
		return nil, err
	}
	var answer any
	return answer, json.Unmarshal(text, &answer)
}

// message returns the message behind a pointer. Some old versions of the client were generated before messages had
// methods for reflection.
func message(pointer reflect.Value) proto.Message {
	return protoimpl.X.ProtoMessageV2Of(pointer.Interface())
}

// unanswered returns whether an error means that the daemon is unreachable or does not know the RPC. Such an error is
// never the one that a step expects.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Unimplemented, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

var variable = regexp.MustCompile(`\$[a-z][A-Za-z]*`)

// fill replaces each $name by the variable, escaped for a JSON string.
func (s *session) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		quoted, _ := json.Marshal(s.vars[name[1:]])
		return strings.Trim(string(quoted), `"`)
	})
}

// lookUp keeps the key of the one entry that matches.
func (s *session) lookUp(answer any, e *entry) error {
	object, _ := answer.(map[string]any)
	entries, _ := object[e.In].(map[string]any)
	var keys []string
	for key, value := range entries {
		matches, err := e.matches(value)
		if err != nil {
			return fmt.Errorf("%s %s: %w", e.In, key, err)
		}
		if matches {
			keys = append(keys, key)
		}
	}
	if len(keys) != 1 {
		return fmt.Errorf("%d entries instead of one have the expected %s: %s", len(keys), e.Field, brief(answer))
	}
	s.vars[e.Keep] = keys[0]
	return nil
}

func (e *entry) matches(value any) (bool, error) {
	object, _ := value.(map[string]any)
	name, isMap := strings.CutSuffix(e.Field, ".*")
	if !isMap {
		text, _ := object[name].(string)
		return e.matchesText(text)
	}
	found := false
	values, _ := object[name].(map[string]any)
	for key, value := range values {
		if e.Keys != nil && !slices.Contains(e.Keys, key) {
			return false, fmt.Errorf("unexpected key %s in %s", key, name)
		}
		text, _ := value.(string)
		matches, err := e.matchesText(text)
		if err != nil {
			return false, err
		}
		found = found || matches
	}
	return found, nil
}

func (e *entry) matchesText(text string) (bool, error) {
	for how, want := range e.Value {
		switch how {
		case "equals":
			return text == want, nil
		case "contains":
			return strings.Contains(text, want), nil
		case "starts_with":
			return strings.HasPrefix(text, want), nil
		case "last_word":
			words := strings.Fields(text)
			if text != "" && len(words) == 0 {
				return false, fmt.Errorf("the text is blank, on which the driver panics")
			}
			return len(words) > 0 && words[len(words)-1] == want, nil
		}
	}
	return false, fmt.Errorf("%v names no way to match", e.Value)
}

// at follows a path such as "volumeIds.0" through decoded JSON.
func at(answer any, path string) (string, error) {
	for _, name := range strings.Split(path, ".") {
		switch here := answer.(type) {
		case map[string]any:
			answer = here[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(here) {
				return "", fmt.Errorf("nothing at %s", path)
			}
			answer = here[i]
		default:
			return "", fmt.Errorf("nothing at %s", path)
		}
	}
	if answer == nil {
		return "", fmt.Errorf("nothing at %s", path)
	}
	return fmt.Sprint(answer), nil
}

// kinds are the placeholders for any text of a kind in an expected response.
var kinds = map[string]*regexp.Regexp{
	"<number>":        regexp.MustCompile(`^[0-9]+$`),
	"<positive>":      regexp.MustCompile(`^[1-9][0-9]*$`),
	"<volume>":        regexp.MustCompile(`^\\\\\?\\Volume\{[-0-9a-fA-F]{36}\}\\$`),
	"<VMware serial>": regexp.MustCompile(`^\s*VMware-([0-9a-fA-F][ -]*){32}\s*$`),
}

// contains returns an error that names where a response differs from the expected one. An object may have more fields,
// and a list that ends in "..." more elements in any order. A string "~x" is matched as a regular expression,
// "<positive>" and the like stand for any text of the kind, and a number may be given as text.
func contains(answer, want any, path string) error {
	switch want := want.(type) {
	case map[string]any:
		have, ok := answer.(map[string]any)
		if !ok {
			return fmt.Errorf("no object at %q", path)
		}
		for name, value := range want {
			if err := contains(have[name], value, path+"/"+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		have, ok := answer.([]any)
		if !ok {
			return fmt.Errorf("no list at %q", path)
		}
		if last := len(want) - 1; last >= 0 && want[last] == "..." {
			for _, value := range want[:last] {
				if !slices.ContainsFunc(have, func(element any) bool { return contains(element, value, path) == nil }) {
					return fmt.Errorf("no %v at %q", value, path)
				}
			}
			return nil
		}
		if len(have) != len(want) {
			return fmt.Errorf("not %d elements at %q", len(want), path)
		}
		for i, value := range want {
			if err := contains(have[i], value, fmt.Sprint(path, "/", i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		if answer == nil {
			return fmt.Errorf("nothing at %q", path)
		}
		text := fmt.Sprint(answer)
		kind := kinds[want]
		if pattern, isPattern := strings.CutPrefix(want, "~"); isPattern {
			kind = regexp.MustCompile(pattern)
		} else if kind == nil && strings.HasPrefix(want, "<") {
			return fmt.Errorf("unknown kind of value %s", want)
		}
		if kind != nil && !kind.MatchString(text) {
			return fmt.Errorf("%q at %q is not like %s", text, path, want)
		}
		if kind == nil && text != want {
			return fmt.Errorf("%v instead of %v at %q", answer, want, path)
		}
		return nil
	}
	if !reflect.DeepEqual(answer, want) {
		return fmt.Errorf("%v instead of %v at %q", answer, want, path)
	}
	return nil
}

// brief returns a response on one line.
func brief(answer any) string {
	text, _ := json.Marshal(answer)
	if len(text) > 160 {
		return string(text[:157]) + "..."
	}
	return string(text)
}

// await calls an RPC without side effects until the daemon answers or the time is over.
func (s *session) await(limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		_, err := s.call(call("system/v1alpha1", "GetBIOSSerialNumber", `{}`))
		if !unanswered(err) {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// answered returns how many different RPCs the daemon has answered.
func (s *session) answered() int {
	count := 0
	for _, answered := range s.called {
		if answered {
			count++
		}
	}
	return count
}
