// Package nodeplugins tests the examples of node plugins with the conformance tests of CSI, on simulated nodes.
package nodeplugins

import (
	"testing"

	"github.com/OWNER/csi-proxy/sim/simtest/sanity"
)

// The paths that kubelet would choose.
const (
	stagingPath = sanity.StagingPath
	targetPath  = sanity.TargetPath
)

// Runs sanity's tests of the services Identity and Node with each plugin.
func TestSanity(t *testing.T) {
	tested := map[string]sanity.Plugin{}
	for name, program := range plugins(t) {
		tested[name] = start(t, program).plugin()
	}
	sanity.Run(t, tested)
}
