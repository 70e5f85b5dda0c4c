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

func TestAnAnswerMayHaveMoreThanIsWantedAndNotLess(t *testing.T) {
	answer := decoded(t, `{"ids":["a","b"],"online":false,"size":"12"}`)
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
	} {
		if err := contains(answer, decoded(t, want), ""); (err == nil) != good {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// disks is a daemon with one disk that goes offline when told to.
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
	return newSession(map[string]func() (any, error){"disk/v1": func() (any, error) { return d, nil }})
}

func TestWhatAStepKeepsGoesIntoTheNext(t *testing.T) {
	s := on(&disks{})
	for _, step := range []step{
		ofDisk("ListDiskIDs", `{}`).finds("found", "diskIDs", "page83", equals("C")),
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
	if !s.applies(step{}.onlyIf("online", "false")) || s.applies(step{}.onlyIf("online", "true")) {
		t.Error("conditions do not see what was kept")
	}
	if s.answered() != 3 {
		t.Error(s.called)
	}
}

func TestARefusalMustBeTheRightOne(t *testing.T) {
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

func TestARequestThatCannotBeMadeIsNoRefusal(t *testing.T) {
	_, err := on(&disks{}).do(ofDisk("GetDiskState", `{"diskNumber":$unknown}`).fails(""))
	if err == nil || !strings.Contains(err.Error(), "not sent") {
		t.Error(err)
	}
}
