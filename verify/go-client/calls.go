package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc/status"
)

// A callLine is one line of the input of -calls.
type callLine struct {
	API     string          `json:"api"` // "disk/v1"
	RPC     string          `json:"rpc"`
	Request json.RawMessage `json:"request"`
}

// A resultLine is the result of one call.
type resultLine struct {
	Code     string `json:"code"` // "OK"
	Message  string `json:"message"`
	Response any    `json:"response"`
}

// callLines makes the calls that it reads, one from each line, and writes the result of each on a line.
func (s *session) callLines(input io.Reader, output io.Writer) error {
	lines := bufio.NewReader(input)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var c callLine
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("%s is not a call: %w", line, err)
		}
		response, err := s.call(call(c.API, c.RPC, string(c.Request)))
		called := status.Convert(err)
		result, err := json.Marshal(resultLine{called.Code().String(), called.Message(), response})
		if err != nil {
			return err
		}
		if _, err := output.Write(append(result, '\n')); err != nil {
			return err
		}
	}
}

// makeCallLines serves the standard streams and ends the program.
func makeCallLines(s *session) {
	if err := s.callLines(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
