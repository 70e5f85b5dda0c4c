package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
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
	request string // protobuf's JSON; $name stands for what an earlier step kept

	want    string            // JSON that the answer must contain; a string "~x" is matched as a regular expression
	keep    map[string]string // name -> path into the answer, such as "volumeIds.0"
	find    *entry
	failing *regexp.Regexp // the call must fail, with an error like this
	when    string         // "$name=value": only then is the RPC called
	ability string         // what the system must be able to do for it
}

// An entry is looked up in a map of the answer, as drivers look for their disk; its key is kept.
type entry struct {
	keep, in, field string
	matches         func(string) bool
}

func call(api, rpc, request string) step { return step{api: api, rpc: rpc, request: request} }

func (s step) wants(answer string) step { s.want = answer; return s }

func (s step) keeps(name, path string) step {
	s.keep = map[string]string{name: path}
	return s
}

func (s step) finds(keep, in, field string, matches func(string) bool) step {
	s.find = &entry{keep, in, field, matches}
	return s
}

// fails says that the call must fail, with a message in which pattern is found.
func (s step) fails(pattern string) step { s.failing = regexp.MustCompile(pattern); return s }

func (s step) onlyIf(name, value string) step { s.when = "$" + name + "=" + value; return s }

// needs says that the step is to be skipped on a system without an ability, by the name that Wine's probe has for it.
func (s step) needs(ability string) step { s.ability = ability; return s }

// lacks is what the system under the daemon cannot do. Windows lacks nothing; what Wine lacks was found by probing.
var lacks = strings.Fields(os.Getenv("CSI_PROXY_WINE_LACKS"))

// A session holds the connections and what steps have kept.
type session struct {
	open   map[string]func() (any, error)
	opened map[string]reflect.Value
	vars   map[string]string
	called map[string]bool // "disk/v1 Rescan": whether the daemon answered, be it with an error
}

func newSession(open map[string]func() (any, error)) *session {
	return &session{open: open, opened: map[string]reflect.Value{}, vars: maps.Clone(node), called: map[string]bool{}}
}

// applies says whether the step's condition holds.
func (s *session) applies(t step) bool {
	if t.when == "" {
		return true
	}
	have, want, _ := strings.Cut(s.fill(t.when), "=")
	return have == want
}

// do calls the RPC and compares; the string tells the outcome in a few words.
func (s *session) do(t step) (string, error) {
	answer, err := s.call(t)
	switch {
	case unanswered(err):
		return "", err
	case t.failing != nil && err == nil:
		return "", fmt.Errorf("succeeded, and must fail with /%s/: %s", t.failing, brief(answer))
	case t.failing != nil && !t.failing.MatchString(err.Error()):
		return "", fmt.Errorf("the error is not like /%s/: %w", t.failing, err)
	case t.failing != nil:
		return "refused, as it must be: " + err.Error(), nil
	case err != nil:
		return "", err
	}
	if t.want != "" {
		var want any
		if err := json.Unmarshal([]byte(s.fill(t.want)), &want); err != nil {
			return "", fmt.Errorf("in the table, %s: %w", t.want, err)
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

// call sends the request by the client's own method and returns the answer as decoded JSON.
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
		return nil, status.Errorf(codes.Canceled, "not sent, %s is no such request: %v", t.request, err)
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

// message is the message behind a pointer. Some of the client's old versions were generated before messages could tell
// their own shape.
func message(pointer reflect.Value) proto.Message {
	return protoimpl.X.ProtoMessageV2Of(pointer.Interface())
}

// unanswered says whether an error tells that the daemon was not there or does not know the RPC. Such an error is
// never the refusal that a step waits for.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Unimplemented, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

var variable = regexp.MustCompile(`\$[a-z][A-Za-z]*`)

// fill replaces each $name by what was kept, as it stands in JSON between quotes.
func (s *session) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		quoted, _ := json.Marshal(s.vars[name[1:]])
		return strings.Trim(string(quoted), `"`)
	})
}

// lookUp keeps the key of the one entry whose field matches.
func (s *session) lookUp(answer any, e *entry) error {
	object, _ := answer.(map[string]any)
	entries, _ := object[e.in].(map[string]any)
	var keys []string
	for key, value := range entries {
		if field, err := at(value, e.field); err == nil && e.matches(field) {
			keys = append(keys, key)
		}
	}
	if len(keys) != 1 {
		return fmt.Errorf("%d entries, not one, have the %s looked for: %s", len(keys), e.field, brief(answer))
	}
	s.vars[e.keep] = keys[0]
	return nil
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

// contains says where an answer lacks what is wanted. Lists must be equal in length, objects may have more.
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
		if !ok || len(have) != len(want) {
			return fmt.Errorf("not %d elements at %q", len(want), path)
		}
		for i, value := range want {
			if err := contains(have[i], value, fmt.Sprint(path, "/", i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		text, isText := answer.(string)
		if pattern, isPattern := strings.CutPrefix(want, "~"); isPattern && isText {
			if !regexp.MustCompile(pattern).MatchString(text) {
				return fmt.Errorf("%q at %q is not like /%s/", text, path, pattern)
			}
			return nil
		}
	}
	if !reflect.DeepEqual(answer, want) {
		return fmt.Errorf("%v, not %v, at %q", answer, want, path)
	}
	return nil
}

// brief shows an answer on one line.
func brief(answer any) string {
	text, _ := json.Marshal(answer)
	if len(text) > 160 {
		return string(text[:157]) + "..."
	}
	return string(text)
}

// await calls an RPC that changes nothing until the daemon answers or the time is over.
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

// answered is how many different RPCs the daemon has answered.
func (s *session) answered() int {
	count := 0
	for _, answered := range s.called {
		if answered {
			count++
		}
	}
	return count
}
