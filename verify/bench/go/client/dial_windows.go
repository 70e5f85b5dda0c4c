package main

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// dial connects to a pipe. The folder of sockets has no meaning here.
func dial(ctx context.Context, _, pipe string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, `\\.\pipe\`+pipe)
}
