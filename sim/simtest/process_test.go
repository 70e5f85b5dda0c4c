package simtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestTheProgramEndsAndItsFolderVanishesWithAProcessThatRunsNoCleanup(t *testing.T) {
	const variable = "SIMTEST_EXIT"
	if os.Getenv(variable) != "" {
		os.Stdout.WriteString(Start(t, NodeFile("")).Sockets + "\n")
		os.Exit(1)
	}
	test := exec.Command(os.Args[0], "-test.run="+t.Name())
	test.Env = append(os.Environ(), variable+"=1")
	output, _ := test.Output()
	folder := strings.TrimSpace(string(output))
	if !strings.HasPrefix(folder, os.TempDir()) {
		t.Fatalf("the process has printed %q", folder)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("%s is still there", folder)
		}
	}
}
