package nodeplugins

import (
	"os/exec"
	"strings"
	"testing"
)

// The program in docs/driver-development.md lists the disks of the node.
func TestTheFirstCallListsTheDisks(t *testing.T) {
	plugins(t) // Skips the test if no simulator is named.
	sockets, _ := serveNode(t)
	program := exec.Command("go", "run", "./firstcall", sockets)
	program.Dir = "../../examples/node-plugin-go"
	output, err := program.CombinedOutput()
	if err != nil || !strings.Contains(string(output), `disk 2: serial number "disk-2"`) {
		t.Errorf("%v: %s", err, output)
	}
}
