package simtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheProgramEndsWithAProcessThatRunsNoCleanup(t *testing.T) {
	const variable = "SIMTEST_EXIT"
	if os.Getenv(variable) != "" {
		os.Stdout.WriteString(Start(t).Sockets + "\n")
		os.Exit(1)
	}
	test := exec.Command(os.Args[0], "-test.run="+t.Name())
	test.Env = append(os.Environ(), variable+"=1")
	output, _ := test.Output()
	folder := strings.TrimSpace(string(output))
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(folder)) })
	socket := filepath.Join(folder, "sim-control.sock")
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("unix", socket)
		if err != nil {
			return
		}
		connection.Close()
		if time.Since(begin) > patience {
			t.Fatal("csi-proxy-sim still runs")
		}
	}
}
