package simtest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

const (
	// retries is how long kubelet repeats a call here.
	retries = 10 * time.Second
	// pause is how long it waits between two of them, instead of half a second and more.
	pause = 10 * time.Millisecond
)

// Kubelet does what kubelet does for the volumes of one CSI driver. It makes the directories that the driver gets, repeats each
// call until it succeeds, and removes the directories afterwards, so that RequireSame finds what the driver has left behind.
//
// The calls are functions, which may call the driver's code or its socket.
type Kubelet struct {
	node    *Node
	plugins string
	pods    string
	// inUse has the calls for what pods use, in their order.
	inUse []use
}

type use struct {
	path string
	call func() error
}

// Kubelet returns a kubelet for the driver of this name, whose root folder is \var\lib\kubelet. Like the default of kubelet,
// that path has no drive. Call Kubelet before NodeFile: it makes the folders that it keeps.
func (n *Node) Kubelet(driver string) *Kubelet {
	n.t.Helper()
	return n.KubeletAt(`\var\lib\kubelet`, driver)
}

// KubeletAt returns a kubelet with another root folder, such as C:\k8s\kubelet for a node with that -kubelet-path.
func (n *Node) KubeletAt(root, driver string) *Kubelet {
	n.t.Helper()
	k := &Kubelet{node: n, plugins: root + `\plugins\kubernetes.io\csi\` + driver, pods: root + `\pods`}
	n.MkdirAll(k.plugins)
	n.MkdirAll(k.pods)
	return k
}

// StagingPath returns the path at which kubelet stages a volume.
func (k *Kubelet) StagingPath(volumeID string) string {
	return fmt.Sprintf(`%s\%x\globalmount`, k.plugins, sha256.Sum256([]byte(volumeID)))
}

// TargetPath returns the path at which kubelet publishes a volume to a pod.
func (k *Kubelet) TargetPath(volumeID, pod string) string {
	return fmt.Sprintf(`%s\%s\volumes\kubernetes.io~csi\%s\mount`, k.pods, pod, volumeID)
}

// Stage makes the staging directory, and calls NodeStageVolume.
func (k *Kubelet) Stage(volumeID string, call func(staging string) error) {
	k.node.t.Helper()
	staging := k.StagingPath(volumeID)
	k.begin(staging, staging, func() error { return call(staging) })
}

// Publish makes the parent of the target, and calls NodePublishVolume.
func (k *Kubelet) Publish(volumeID, pod string, call func(staging, target string) error) {
	k.node.t.Helper()
	staging, target := k.StagingPath(volumeID), k.TargetPath(volumeID, pod)
	k.begin(target, parent(target), func() error { return call(staging, target) })
}

// Unpublish calls NodeUnpublishVolume, and removes the target.
func (k *Kubelet) Unpublish(volumeID, pod string, call func(target string) error) {
	k.node.t.Helper()
	target := k.TargetPath(volumeID, pod)
	k.end(target, k.pods, func() error { return call(target) })
}

// Unstage calls NodeUnstageVolume, and removes the staging directory.
func (k *Kubelet) Unstage(volumeID string, call func(staging string) error) {
	k.node.t.Helper()
	staging := k.StagingPath(volumeID)
	k.end(staging, k.plugins, func() error { return call(staging) })
}

// Resume stages and publishes again what pods use, as kubelet does after a restart of the node.
func (k *Kubelet) Resume() {
	k.node.t.Helper()
	for _, use := range k.inUse {
		k.node.repeat(use.call)
	}
}

// begin makes a directory and the call for a path.
func (k *Kubelet) begin(path, directory string, call func() error) {
	k.node.t.Helper()
	k.node.MkdirAll(directory)
	k.node.repeat(call)
	k.forget(path)
	k.inUse = append(k.inUse, use{path, call})
}

// end makes the call for a path, and removes the path and those of its parents that are empty then, up to a folder that stays.
func (k *Kubelet) end(path, stays string, call func() error) {
	k.node.t.Helper()
	k.node.repeat(call)
	k.forget(path)
	err := k.remove(path)
	// The driver may have removed it.
	if err != nil && status.Code(err) != codes.NotFound {
		k.node.t.Errorf("kubelet cannot remove %s: the driver has left something behind: %v", path, err)
	}
	for folder := parent(path); folder != stays; folder = parent(folder) {
		if k.remove(folder) != nil {
			break // Another volume or pod uses it.
		}
	}
}

func (k *Kubelet) forget(path string) {
	k.inUse = slices.DeleteFunc(k.inUse, func(use use) bool { return use.path == path })
}

// remove removes a directory, a link or a mount point as os.Remove does.
func (k *Kubelet) remove(path string) error {
	_, err := k.node.Files.Remove(within(k.node.t), &simcontrol.RemoveRequest{Path: path})
	return err
}

func parent(path string) string { return path[:strings.LastIndex(path, `\`)] }

// repeat repeats a call until it succeeds, as kubelet does whatever the error is.
func (n *Node) repeat(call func() error) {
	n.t.Helper()
	err := call()
	for begin := time.Now(); err != nil && time.Since(begin) < retries; err = call() {
		time.Sleep(pause)
	}
	if err != nil {
		n.t.Fatalf("the call has failed for %v, at last with: %v", retries, err)
	}
}
