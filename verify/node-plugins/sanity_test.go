// Package nodeplugins tests the examples of node plugins with the conformance tests of CSI, on simulated nodes.
package nodeplugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
		config.Address = node.address
		config.ControllerAddress = "unix:" + serveController(t, node)
		config.TargetPath, config.StagingPath = targetPath, stagingPath
		config.CreateTargetDir, config.CreateStagingDir = node.mkdir, node.mkdir
		config.RemoveTargetPath, config.RemoveStagingPath = node.rmdir, node.rmdir
		config.CheckPath = func(path string) (sanity.PathKind, error) { return node.checkPath(t, path) }
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

// mkdir creates a directory as kubelet does. Under Wine, the plugin has to.
func (s started) mkdir(path string) (string, error) {
	if s.files == nil {
		return path, nil
	}
	_, err := s.files.Mkdir(context.Background(), &filesystem.MkdirRequest{Path: path})
	return path, err
}

// rmdir removes a directory as kubelet does. The plugin must have left it empty; sanity does not look at the error.
func (s started) rmdir(path string) error {
	if s.files == nil {
		return nil
	}
	_, err := s.files.Rmdir(context.Background(), &filesystem.RmdirRequest{Path: path})
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the plugin has left something behind at %s", path)
	return nil
}

// checkPath tells what exists at a path.
func (s started) checkPath(t *testing.T, path string) (sanity.PathKind, error) {
	if s.files == nil {
		// There, only the plugin can tell.
		return s.checkVolume(t, path)
	}
	path = strings.ReplaceAll(path, "/", `\`)
	response, err := s.files.PathExists(context.Background(), &filesystem.PathExistsRequest{Path: path})
	if err != nil || !response.GetExists() {
		return sanity.PathIsNotFound, err
	}
	return sanity.PathIsDir, nil
}

// checkVolume tells whether the plugin finds a volume at a path.
func (s started) checkVolume(t *testing.T, path string) (sanity.PathKind, error) {
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: "any", VolumePath: path}
	_, err := csi.NewNodeClient(connect(t, s.address)).NodeGetVolumeStats(within(t), request)
	switch status.Code(err) {
	case codes.OK:
		return sanity.PathIsDir, nil
	case codes.NotFound:
		return sanity.PathIsNotFound, nil
	}
	return "", err
}
