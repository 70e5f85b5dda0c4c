package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEachLineIsOneCallAndGetsOneLine(t *testing.T) {
	input := `{"api":"disk/v1","rpc":"SetDiskState","request":{"diskNumber":3,"isOnline":false}}
{"api":"disk/v1","rpc":"GetDiskState","request":{"diskNumber":3}}
{"api":"disk/v1","rpc":"NoSuchRPC","request":{}}
`
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, []string{
			`{"code":"OK","message":"","response":{}}`,
			`{"code":"OK","message":"","response":{"isOnline":false}}`,
		}},
		{status.Error(codes.NotFound, `no C:\x`), []string{
			`{"code":"NotFound","message":"no C:\\x","response":null}`,
			`{"code":"NotFound","message":"no C:\\x","response":null}`,
		}},
	} {
		var output strings.Builder
		if err := on(&disks{err: c.err}).callLines(strings.NewReader(input), &output); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		if len(lines) != 3 || lines[0] != c.want[0] || lines[1] != c.want[1] || !strings.Contains(lines[2], "Unimplemented") {
			t.Errorf("%q", lines)
		}
	}
	if err := on(&disks{}).callLines(strings.NewReader("no call\n"), &strings.Builder{}); err == nil {
		t.Error("a line that is no call was accepted")
	}
}
