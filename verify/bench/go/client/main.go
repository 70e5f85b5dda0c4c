// Client generates the load of `cargo xtask bench`: concurrent callers that call one RPC of one server, and check each
// answer.
//
// It prints "started" before it connects, "answered" after the first answer, and "ready" when it is warmed up. It starts
// to measure when it reads a line, prints the result as a line of JSON, and waits until standard input is closed. xtask
// can start the server after "started", to measure how long its start takes; at "ready" and at the result, it reads the
// system's counters for the server and for this process.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// How long the server may take to start, and the callers to finish after the window has ended.
const patience = 60 * time.Second

type options struct {
	folder, rpc, path, expect string
	callers                   int
	connections               string
	requestBytes, replyBytes  int
	during                    string
	warmUp, window            time.Duration
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("client: ")
	var o options
	flag.StringVar(&o.folder, "socket-folder", "", "the folder of the server's sockets; on Windows its pipes are called")
	flag.StringVar(&o.rpc, "rpc", "", "what to call: "+pingPong+", "+strings.Join(rpcNames(), ", "))
	flag.StringVar(&o.path, "path", "", "the path, volume or disk to ask for")
	flag.StringVar(&o.expect, "expect", "", "the right answer, such as true, 5 disks or PermissionDenied")
	flag.IntVar(&o.callers, "callers", 1, "how many callers call at once")
	flag.StringVar(&o.connections, "connections", shared, "one connection for all callers ("+shared+"), one for each caller ("+each+"), or a new one for each call ("+perCall+")")
	flag.IntVar(&o.requestBytes, "request-bytes", 100, "the size of a request of "+pingPong)
	flag.IntVar(&o.replyBytes, "reply-bytes", 50, "the size of a reply of "+pingPong)
	flag.StringVar(&o.during, "during", "", "a call that must run all the time: "+strings.Join(longCallNames(), ", "))
	flag.DurationVar(&o.warmUp, "warm-up", 200*time.Millisecond, "how long to call before measuring")
	flag.DurationVar(&o.window, "window", time.Second, "how long to measure")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) error {
	server, err := newServer(o)
	if err != nil {
		return err
	}
	// A deadline in the calls' context would send a grpc-timeout header with each call.
	time.AfterFunc(o.warmUp+o.window+2*patience, func() { log.Fatal("the calls did not end in time") })

	fmt.Println("started")
	if err := awaitListener(o.folder, server.pipe()); err != nil {
		return err
	}
	calls, err := connect(server, o.connections, o.callers)
	if err != nil {
		return err
	}
	if err := calls[0](); err != nil {
		return err
	}
	fmt.Println("answered")
	long, err := startLongCall(o)
	if err != nil {
		return err
	}
	if _, err := measure(calls, o.warmUp); err != nil {
		return err
	}

	input := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := input.ReadString('\n'); err != nil {
		return errors.New("standard input closed before the measurement")
	}
	before := traffic.now()
	result, err := measure(calls, o.window)
	if err != nil {
		return err
	}
	if err := long.stillRuns(); err != nil {
		return err
	}
	report := struct {
		Result
		Traffic
		ResponseBytes int    `json:"response_bytes"`
		GRPC          string `json:"grpc"`
	}{result, traffic.now().since(before).per(result.Calls), server.responseBytes(), grpc.Version}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	_, _ = input.ReadString('\n') // returns an error at the end of the input, as intended
	return nil
}

// awaitListener polls by itself, since grpc-go waits a second before it dials again.
func awaitListener(folder, pipe string) error {
	deadline := time.Now().Add(patience)
	for {
		connection, err := dialWithin(time.Second, folder, pipe)
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not accept connections: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
}
