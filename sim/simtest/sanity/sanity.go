// Package sanity runs the conformance tests of CSI, kubernetes-csi/csi-test, for the services Identity and Node of a plugin
// on a simulated node. The package has the driver's other half: a controller whose volumes are disks that it plugs in, grows
// and unplugs.
//
//	sanity.Run(t, map[string]sanity.Plugin{"my driver": {Address: "unix:/tmp/csi.sock", Node: node}})
package sanity

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/OWNER/csi-proxy/sim/simtest"
	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

// The paths that kubelet would choose. The tests publish at the second with /target appended.
const (
	StagingPath = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\driver.example.com\0123456789abcdef\globalmount`
	TargetPath  = `C:\var\lib\kubelet\pods\0f1e2d3c\volumes\kubernetes.io~csi\pvc-1`
)

// Plugin is a node plugin under test.
type Plugin struct {
	// Address is that of the plugin's CSI services for gRPC, such as unix:/tmp/csi.sock.
	Address string
	// Node is the simulated node. Nil for a node that the test cannot change: its volumes are the disks with the serial numbers
	// disk-1 and disk-2, which are always plugged in, and the plugin has to make its directories.
	Node *simtest.Node
	// Disk returns the keys of a volume's disk in a node file, such as `location = "..."`. Nil for a serial number that is the
	// ID of the volume.
	Disk func(volumeID string) (keys string)
	// PublishContext returns the answer of ControllerPublishVolume. Nil for none.
	PublishContext func(volumeID string) map[string]string
}

// Run runs the tests with each plugin, whose names are in the names of the tests. A program of tests can call Run once.
func Run(t *testing.T, plugins map[string]Plugin) {
	for name, plugin := range plugins {
		config := sanity.NewTestConfig()
		config.Address, config.ControllerAddress = plugin.Address, "unix:"+NewController(plugin).serve(t)
		config.TargetPath, config.StagingPath = TargetPath, StagingPath
		config.CreateTargetDir, config.CreateStagingDir = plugin.mkdir, plugin.mkdir
		config.RemoveTargetPath, config.RemoveStagingPath = plugin.rmdir, plugin.rmdir
		config.CheckPath = plugin.checkPath
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
func (p Plugin) mkdir(path string) (string, error) {
	if p.Node == nil {
		return path, nil
	}
	_, err := p.Node.Files.MakeDirectory(context.Background(), &simcontrol.MakeDirectoryRequest{Path: path})
	return path, err
}

// rmdir removes a directory as kubelet does. The plugin must have left it empty or removed it; sanity does not look at the
// error.
func (p Plugin) rmdir(path string) error {
	if p.Node == nil {
		return nil
	}
	_, err := p.Node.Files.Remove(context.Background(), &simcontrol.RemoveRequest{Path: path})
	if status.Code(err) != codes.NotFound {
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the plugin has left something behind at %s", path)
	}
	return nil
}

// checkPath tells what exists at a path.
func (p Plugin) checkPath(path string) (sanity.PathKind, error) {
	if p.Node == nil {
		return p.checkVolume(path) // There, only the plugin can tell.
	}
	found, err := p.Node.Files.Stat(context.Background(), &simcontrol.StatRequest{Path: path})
	if err != nil || !found.GetExists() {
		return sanity.PathIsNotFound, err
	}
	return sanity.PathIsDir, nil
}

// checkVolume tells whether the plugin finds a volume at a path.
func (p Plugin) checkVolume(path string) (sanity.PathKind, error) {
	connection, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: "any", VolumePath: path}
	_, err = csi.NewNodeClient(connection).NodeGetVolumeStats(context.Background(), request)
	switch status.Code(err) {
	case codes.OK:
		return sanity.PathIsDir, nil
	case codes.NotFound:
		return sanity.PathIsNotFound, nil
	}
	return "", err
}

// serve serves the controller, and returns its socket.
func (c *Controller) serve(t *testing.T) string {
	t.Helper()
	// The path of a socket must be short, and t.TempDir has the name of the test in its path.
	folder, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "controller.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterControllerServer(server, c)
	csi.RegisterIdentityServer(server, c)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return socket
}
