package main

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// dial opens a named pipe of csi-proxy.
func dial(ctx context.Context, _, name string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, `\\.\pipe\`+name)
}
