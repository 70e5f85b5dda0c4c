package main

import (
	"errors"
	"io"
	"net"
)

// The name of the exchange of bytes without gRPC, beside the names of RPCs.
const pingPong = "PingPong"

// A pingPongServer answers each request of so many bytes with a reply of so many bytes, in the order of the requests.
// The content of neither matters.
type pingPongServer struct {
	options
}

func (s pingPongServer) pipe() string { return "csi-proxy-ping-pong" }

func (s pingPongServer) responseBytes() int { return s.replyBytes }

func (s pingPongServer) connect() (connection, error) {
	stream, err := dialWithin(patience, s.folder, s.pipe())
	if err != nil {
		return nil, err
	}
	return newPingPong(counted{stream}, s.requestBytes, s.replyBytes), nil
}

// A pingPongConnection sends what several callers want to send at the same time in one write, as gRPC does.
type pingPongConnection struct {
	stream   io.ReadWriteCloser
	requests chan chan<- error
	// The callers whose requests have been sent, in their order.
	sent chan chan<- error
}

// How many requests one write sends at most, and how many may wait.
const largestBatch = 256

var errClosed = errors.New("the connection is closed")

func newPingPong(stream net.Conn, requestBytes, replyBytes int) *pingPongConnection {
	c := &pingPongConnection{stream, make(chan chan<- error, largestBatch), make(chan chan<- error, 2*largestBatch)}
	go c.write(make([]byte, largestBatch*requestBytes), requestBytes)
	go c.read(make([]byte, largestBatch*replyBytes), replyBytes)
	return c
}

func (c *pingPongConnection) call() error {
	answered := make(chan error, 1)
	c.requests <- answered
	return <-answered
}

func (c *pingPongConnection) Close() error {
	close(c.requests)
	return c.stream.Close()
}

func (c *pingPongConnection) write(zeros []byte, size int) {
	defer close(c.sent)
	for first := range c.requests {
		batch := []chan<- error{first}
		for more := true; more && len(batch) < largestBatch; {
			select {
			case next, ok := <-c.requests:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		for _, caller := range batch {
			c.sent <- caller
		}
		if _, err := c.stream.Write(zeros[:len(batch)*size]); err != nil {
			c.stream.Close() // The reader reports the error to the callers.
		}
	}
}

func (c *pingPongConnection) read(buffer []byte, size int) {
	received := 0
	for {
		n, err := c.stream.Read(buffer)
		received += n
		for ; received >= size; received -= size {
			(<-c.sent) <- nil
		}
		if err != nil {
			for caller := range c.sent {
				caller <- errors.Join(errClosed, err)
			}
			return
		}
	}
}
