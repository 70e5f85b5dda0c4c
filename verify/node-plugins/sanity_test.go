// Package nodeplugins tests the examples of node plugins with the conformance tests of CSI, on simulated nodes.
package nodeplugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// The paths that kubelet would choose. The tests of sanity publish at the second with /target appended.
const (
	stagingPath = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\driver.example.com\0123456789abcdef\globalmount`
	targetPath  = `C:\var\lib\kubelet\pods\0f1e2d3c\volumes\kubernetes.io~csi\pvc-1`
)

// Runs sanity's tests of the services Identity and Node with each plugin. The controller belongs to this test.
func TestSanity(t *testing.T) {
	for name, program := range plugins(t) {
		node := start(t, program)
		config := sanity.NewTestConfig()
		config.Address = "unix:" + node.csi
		config.ControllerAddress = "unix:" + serveController(t, node.disks)
		config.TargetPath, config.StagingPath = targetPath, stagingPath
		config.CreateTargetDir, config.CreateStagingDir = node.mkdir, node.mkdir
		config.RemoveTargetPath, config.RemoveStagingPath = node.rmdir, node.rmdir
		config.CheckPath = node.checkPath
		ginkgo.Describe(name+" plugin:", func() { t.Cleanup(sanity.GinkgoTest(&config).Finalize) })
	}
	ginkgo.ReportAfterEach(report)
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FocusStrings = []string{"Identity Service", "Node Service"}
	reporter.NoColor = true
	ginkgo.RunSpecs(t, "CSI sanity", suite, reporter)
}

// report prints the result of a test of the suite as `go test -v` prints that of a test.
func report(spec ginkgo.SpecReport) {
	name := strings.ReplaceAll(spec.FullText(), " ", "_")
	switch {
	case spec.State.Is(types.SpecStatePassed):
		fmt.Printf("\n--- PASS: %s (%.2fs)\n", name, spec.RunTime.Seconds())
	case spec.State.Is(types.SpecStateFailureStates):
		fmt.Printf("\n%s\n--- FAIL: %s (%.2fs)\n", spec.FailureMessage(), name, spec.RunTime.Seconds())
	case spec.FailureMessage() != "":
		fmt.Printf("\n%s\n--- SKIP: %s (0.00s)\n", spec.FailureMessage(), name)
	default: // Not among the focus strings.
	}
}

// mkdir creates a directory as kubelet does.
func (s started) mkdir(path string) (string, error) {
	_, err := s.files.Mkdir(context.Background(), &filesystem.MkdirRequest{Path: path})
	return path, err
}

// rmdir removes a directory as kubelet does. The plugin must have left it empty; sanity does not look at the error.
func (s started) rmdir(path string) error {
	_, err := s.files.Rmdir(context.Background(), &filesystem.RmdirRequest{Path: path})
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the plugin has left something behind at %s", path)
	return nil
}

// checkPath tells what exists at a path.
func (s started) checkPath(path string) (sanity.PathKind, error) {
	path = strings.ReplaceAll(path, "/", `\`)
	response, err := s.files.PathExists(context.Background(), &filesystem.PathExistsRequest{Path: path})
	if err != nil || !response.GetExists() {
		return sanity.PathIsNotFound, err
	}
	return sanity.PathIsDir, nil
}
