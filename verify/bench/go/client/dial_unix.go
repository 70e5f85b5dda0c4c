//go:build unix

package main

import (
	"context"
	"net"
	"path/filepath"
)

// dial connects to an endpoint, by the name of its pipe: a socket in a folder stands for it.
func dial(ctx context.Context, folder, pipe string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, pipe+".sock"))
}
