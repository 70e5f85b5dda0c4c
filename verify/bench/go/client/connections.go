package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// How the callers are connected.
const (
	shared  = "shared"
	each    = "each"
	perCall = "per-call"
)

// A server is what is called, by gRPC or without it.
type server interface {
	// pipe returns the name of the pipe.
	pipe() string
	connect() (connection, error)
	// responseBytes returns the encoded size of the last response; 0 for an error.
	responseBytes() int
}

// A connection to the server. Any number of callers may call at once.
type connection interface {
	// call makes one call, and fails unless the answer is the expected one.
	call() error
	Close() error
}

// connect returns the function that each caller calls.
func connect(server server, connections string, callers int) ([]func() error, error) {
	calls := make([]func() error, callers)
	for caller := range calls {
		switch {
		case connections == perCall:
			calls[caller] = func() error { return callOnce(server) }
		case connections == shared && caller > 0:
			calls[caller] = calls[0]
		case connections == shared || connections == each:
			connection, err := server.connect()
			if err != nil {
				return nil, err
			}
			calls[caller] = connection.call
		default:
			return nil, fmt.Errorf("unknown use of connections %q", connections)
		}
	}
	return calls, nil
}

func callOnce(server server) error {
	connection, err := server.connect()
	if err != nil {
		return err
	}
	if err := connection.call(); err != nil {
		return err
	}
	return connection.Close()
}

func dialWithin(limit time.Duration, folder, pipe string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return dial(ctx, folder, pipe)
}

// traffic counts the bytes of all connections.
var traffic counter

type counter struct {
	sent, received atomic.Int64
}

// Traffic is a number of bytes, or of bytes for each call.
type Traffic struct {
	Sent     float64 `json:"sent_bytes"`
	Received float64 `json:"received_bytes"`
}

func (c *counter) now() Traffic {
	return Traffic{float64(c.sent.Load()), float64(c.received.Load())}
}

func (t Traffic) since(before Traffic) Traffic {
	return Traffic{t.Sent - before.Sent, t.Received - before.Received}
}

func (t Traffic) per(calls int) Traffic {
	return Traffic{t.Sent / float64(calls), t.Received / float64(calls)}
}

// A counted connection adds its bytes to the traffic.
type counted struct {
	net.Conn
}

func (c counted) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	traffic.received.Add(int64(n))
	return n, err
}

func (c counted) Write(bytes []byte) (int, error) {
	n, err := c.Conn.Write(bytes)
	traffic.sent.Add(int64(n))
	return n, err
}
