// Client generates the load of `cargo xtask bench`: concurrent callers that call one RPC of one server, and check each
// answer.
//
// It prints "ready" when it is connected and warmed up, starts to measure when it reads a line, prints the result as a
// line of JSON, and waits until standard input is closed. At "ready" and at the result, xtask reads the system's
// counters for the server and for this process.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// How long the callers may take to finish after the window has ended.
const patience = 20 * time.Second

type options struct {
	folder, rpc, path, expect string
	callers                   int
	warmUp, window            time.Duration
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("client: ")
	var o options
	flag.StringVar(&o.folder, "socket-folder", "", "the folder of the server's sockets")
	flag.StringVar(&o.rpc, "rpc", "", "what to call: "+strings.Join(rpcNames(), ", "))
	flag.StringVar(&o.path, "path", "", "the path to ask for")
	flag.StringVar(&o.expect, "expect", "", "the right answer, such as true, 5 disks or PermissionDenied")
	flag.IntVar(&o.callers, "callers", 1, "how many callers call at once")
	flag.DurationVar(&o.warmUp, "warm-up", 200*time.Millisecond, "how long to call before measuring")
	flag.DurationVar(&o.window, "window", time.Second, "how long to measure")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) error {
	rpc, ok := rpcs[o.rpc]
	if !ok {
		return fmt.Errorf("unknown RPC %q", o.rpc)
	}
	// A deadline in the calls' context would send a grpc-timeout header with each call.
	time.AfterFunc(o.warmUp+o.window+patience, func() { log.Fatal("the calls did not end in time") })

	connection, err := connect(filepath.Join(o.folder, rpc.pipe+".sock"))
	if err != nil {
		return err
	}
	defer connection.Close()
	call := func() error {
		_, err := rpc.checked(connection, o)
		return err
	}
	response, err := rpc.checked(connection, o)
	if err != nil {
		return err
	}
	if _, err := measure(o.callers, o.warmUp, call); err != nil {
		return err
	}

	input := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := input.ReadString('\n'); err != nil {
		return errors.New("standard input closed before the measurement")
	}
	result, err := measure(o.callers, o.window, call)
	if err != nil {
		return err
	}
	report := struct {
		Result
		ResponseBytes int    `json:"response_bytes"`
		GRPC          string `json:"grpc"`
	}{result, proto.Size(response), grpc.Version}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	_, _ = input.ReadString('\n') // returns an error at the end of the input, as intended
	return nil
}
