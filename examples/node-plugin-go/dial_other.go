//go:build !windows

package main

import (
	"context"
	"net"
	"path/filepath"
)

// dial opens a Unix socket of csi-proxy-sim, which has the name of the pipe.
func dial(ctx context.Context, folder, name string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(folder, name+".sock"))
}
