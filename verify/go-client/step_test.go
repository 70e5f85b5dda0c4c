package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
)

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAResponseMayHaveMoreThanIsWantedButNotLess(t *testing.T) {
	answer := decoded(t, `{"ids":["a","b"],"online":false,"size":"12","disk":3}`)
	for want, good := range map[string]bool{
		`{}`:                    true,
		`{"online":false}`:      true,
		`{"online":true}`:       false,
		`{"ids":["a","b"]}`:     true,
		`{"ids":["a"]}`:         false,
		`{"size":"~^[1-9]+$"}`:  true,
		`{"size":"~^[2-9]+$"}`:  false,
		`{"missing":""}`:        false,
		`{"missing":"~^"}`:      false,
		`{"ids":{"a":"b"}}`:     false,
		`{"ids":["~.","~.c"]}`:  false,
		`{"size":"12","ids":1}`: false,
		`{"ids":["b","..."]}`:   true,
		`{"ids":["c","..."]}`:   false,
		`{"size":"<positive>"}`: true,
		`{"size":"<volume>"}`:   false,
		`{"size":"<unknown>"}`:  false,
		`{"disk":"3"}`:          true,
		`{"disk":"4"}`:          false,
	} {
		if err := contains(answer, decoded(t, want), ""); (err == nil) != good {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// disks stands for a daemon with a disk that SetDiskState takes offline.
type disks struct {
	diskv1.DiskClient
	offline bool
	err     error
}

func (d *disks) SetDiskState(_ context.Context, r *diskv1.SetDiskStateRequest, _ ...grpc.CallOption) (*diskv1.SetDiskStateResponse, error) {
	d.offline = !r.IsOnline
	return &diskv1.SetDiskStateResponse{}, d.err
}

func (d *disks) GetDiskState(context.Context, *diskv1.GetDiskStateRequest, ...grpc.CallOption) (*diskv1.GetDiskStateResponse, error) {
	return &diskv1.GetDiskStateResponse{IsOnline: !d.offline}, d.err
}

func (d *disks) ListDiskIDs(context.Context, *diskv1.ListDiskIDsRequest, ...grpc.CallOption) (*diskv1.ListDiskIDsResponse, error) {
	return &diskv1.ListDiskIDsResponse{DiskIDs: map[uint32]*diskv1.DiskIDs{3: {Page83: `a\b`}, 4: {Page83: "c"}}}, d.err
}

func on(d *disks) *session {
	return newSession(map[string]func() (any, error){"disk/v1": func() (any, error) { return d, nil }}, variables)
}

func TestAStepUsesTheVariablesThatEarlierStepsKept(t *testing.T) {
	s := on(&disks{})
	find := ofDisk("ListDiskIDs", `{}`)
	find.find = &entry{Keep: "found", In: "diskIDs", Field: "page83", Value: map[string]string{"equals": "c"}}
	for _, step := range []step{
		find,
		ofDisk("ListDiskIDs", `{}`).keeps("name", "diskIDs.3.page83"),
		ofDisk("ListDiskIDs", `{}`).wants(`{"diskIDs":{"3":{"page83":"$name"}}}`),
		ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":false}`),
		ofDisk("GetDiskState", `{"diskNumber":$found}`).wants(`{"isOnline":false}`).keeps("online", "isOnline"),
	} {
		if _, err := s.do(step); err != nil {
			t.Fatalf("%s: %v", step.rpc, err)
		}
	}
	if s.vars["found"] != "4" || s.vars["name"] != `a\b` || s.vars["online"] != "false" {
		t.Error(s.vars)
	}
	if s.answered() != 3 {
		t.Error(s.called)
	}
}

func TestAnErrorMustBeTheExpectedOne(t *testing.T) {
	get := ofDisk("GetDiskState", `{}`)
	for _, c := range []struct {
		code codes.Code
		step step
		good bool
	}{
		{codes.OK, get, true},
		{codes.NotFound, get, false},
		{codes.OK, get.fails(""), false},
		{codes.NotFound, get.fails(""), true},
		{codes.NotFound, get.fails("NotFound"), true},
		{codes.Internal, get.fails("NotFound"), false},
		{codes.Unavailable, get.fails(""), false},
		{codes.Unimplemented, get.fails(""), false},
	} {
		var err error
		if c.code != codes.OK {
			err = status.Error(c.code, "no")
		}
		if _, err := on(&disks{err: err}).do(c.step); (err == nil) != c.good {
			t.Errorf("%v and /%v/: %v", c.code, c.step.failing, err)
		}
	}
}

func TestARequestThatCannotBeSentIsNeverTheExpectedError(t *testing.T) {
	_, err := on(&disks{}).do(ofDisk("GetDiskState", `{"diskNumber":$unknown}`).fails(""))
	if err == nil || !strings.Contains(err.Error(), "not sent") {
		t.Error(err)
	}
}

func TestOneEntryMustMatch(t *testing.T) {
	entries := func(text string) any { return decoded(t, `{"ids":`+text+`}`) }
	find := func(field, how, want string, keys ...string) *entry {
		return &entry{Keep: "disk", In: "ids", Field: field, Value: map[string]string{how: want}, Keys: keys}
	}
	for _, c := range []struct {
		entries string
		find    *entry
		found   string
		err     string
	}{
		{`{"1":{"page83":"Google  pvc-1"},"2":{"page83":""}}`, find("page83", "last_word", "pvc-1"), "1", ""},
		{`{"1":{"page83":"pvc-1"},"2":{"page83":"pvc-2"}}`, find("page83", "contains", "pvc"), "", "2 entries"},
		{`{"1":{"page83":"pvc-1"}}`, find("page83", "equals", "PVC-1"), "", "0 entries"},
		{`{"1":{"page83":"  "}}`, find("page83", "last_word", "pvc-1"), "", "the driver panics"},
		{`{"7":{"identifiers":{"page83":"eui.1"}}}`, find("identifiers.*", "starts_with", "eui.", "page83"), "7", ""},
		{`{"7":{"identifiers":{"eui64":"1"}}}`, find("identifiers.*", "starts_with", "eui.", "page83"), "", "unexpected key eui64"},
		{`{"1":{"page83":"x"}}`, find("page83", "like", "x"), "", "no way to match"},
	} {
		s := on(&disks{})
		delete(s.vars, "disk")
		err := s.lookUp(entries(c.entries), c.find)
		if s.vars["disk"] != c.found || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.entries, s.vars["disk"], err)
		}
	}
}
