package main

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestNothingIsMountedOnlyIfACSIProxySaysSo(t *testing.T) {
	const noFile = "The system cannot find the file specified."
	for _, c := range []struct {
		code codes.Code
		text string
		want bool
	}{
		{codes.NotFound, `cannot read C:\p because it does not exist`, true},
		{codes.Unknown, `error getting the volume for the mount C:\p, internal error (Get-Item C:\p).Target, output: , error: <nil>`, true},
		{codes.Unknown, `C:\p is not a mounted folder`, true},
		{codes.Unknown, noFile, true},
		{codes.Unknown, "Access is denied.", false},
		// While csi-proxy starts, its pipe is missing.
		{codes.Unavailable, `error while dialing: open \\.\pipe\csi-proxy-volume-v1: ` + noFile, false},
	} {
		if got := isNotMounted(status.Error(c.code, c.text)); got != c.want {
			t.Errorf("%v %s: %v", c.code, c.text, got)
		}
	}
	if isNotMounted(nil) {
		t.Error("nil")
	}
}
