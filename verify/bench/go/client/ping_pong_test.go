package main

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// echo answers each request, and keeps the last bytes of a request that is not whole yet.
func echo(stream net.Conn, requestBytes, replyBytes int) {
	buffer, received := make([]byte, 4096), 0
	for {
		n, err := stream.Read(buffer)
		if err != nil {
			return
		}
		received += n
		if _, err := stream.Write(make([]byte, received/requestBytes*replyBytes)); err != nil {
			return
		}
		received %= requestBytes
	}
}

func TestCallersOfOnePingPongAreAllAnswered(t *testing.T) {
	client, server := net.Pipe()
	go echo(server, 7, 3)
	connection := newPingPong(client, 7, 3)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for range 20 {
				if err := connection.call(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	server.Close()
	if err := connection.call(); !errors.Is(err, errClosed) {
		t.Errorf("a call on a closed connection: %v", err)
	}
}

type countingServer struct {
	connections, calls, closed int
}

func (s *countingServer) pipe() string { return "" }

func (s *countingServer) responseBytes() int { return 0 }

func (s *countingServer) connect() (connection, error) {
	s.connections++
	return s, nil
}

func (s *countingServer) call() error {
	s.calls++
	return nil
}

func (s *countingServer) Close() error {
	s.closed++
	return nil
}

func TestCallersAreConnectedAsAsked(t *testing.T) {
	for _, c := range []struct {
		connections string
		want        countingServer
	}{
		{shared, countingServer{1, 8, 0}},
		{each, countingServer{4, 8, 0}},
		{perCall, countingServer{8, 8, 8}},
	} {
		var server countingServer
		calls, err := connect(&server, c.connections, 4)
		if err != nil || len(calls) != 4 {
			t.Fatal(calls, err)
		}
		for range 2 {
			for _, call := range calls {
				if err := call(); err != nil {
					t.Error(err)
				}
			}
		}
		if server != c.want {
			t.Errorf("%s: %+v, not %+v", c.connections, server, c.want)
		}
	}
	if _, err := connect(&countingServer{}, "none", 1); err == nil {
		t.Error("an unknown use of connections is accepted")
	}
}

func TestALongCallThatEndsIsNoticed(t *testing.T) {
	var none longCall
	ended, running := make(longCall, 1), make(longCall, 1)
	ended <- nil
	if none.stillRuns() != nil || running.stillRuns() != nil || ended.stillRuns() == nil {
		t.Error("only the call that has ended is to be noticed")
	}
}
