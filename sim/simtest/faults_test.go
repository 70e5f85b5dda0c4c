package simtest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

func TestAFaultThatDisturbsNoCallIsReportedAtTheLineThatInjectedIt(t *testing.T) {
	const variable = "SIMTEST_MISS"
	if os.Getenv(variable) != "" {
		node := Start(t)
		_, _, line, _ := runtime.Caller(0)
		node.FailRPC("disk/Rescan", codes.Aborted)
		fmt.Printf("faults_test.go:%d: \n", line+1)
		return
	}
	test := exec.Command(os.Args[0], "-test.run="+t.Name())
	test.Env = append(os.Environ(), variable+"=1")
	output, err := test.Output()
	line, report, _ := strings.Cut(string(output), "\n")
	if err == nil || !strings.Contains(report, line+"the fault has disturbed no call") {
		t.Errorf("%v\n%s", err, output)
	}
}
