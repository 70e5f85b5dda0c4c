//go:build ignore

// A disk's life by the mounter of the EBS driver.
package main

import (
	"context"
	"fmt"
	"os"

	"csi-proxy.local/v2pipe"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/mounter"
)

const (
	// The owner of a pipe that csi-proxy-sim makes under Wine.
	ofWine  = "S-1-5-21-0-0-0-513"
	staging = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\ebs.csi.aws.com\1\globalmount`
	pod     = `C:\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pvc-1\mount`
)

func main() {
	node, err := v2pipe.OpenOwnedBy(context.Background(), ofWine)
	must("Open", err)
	m := &mounter.CSIProxyMounterV2{FsClient: node.Filesystem, DiskClient: node.Disk, VolumeClient: node.Volume}

	disk, err := m.FindDevicePath("/dev/xvdba", "vol-1", "", "")
	must("FindDevicePath", err)
	must("MakeDir", m.MakeDir(staging))
	must("FormatAndMount", m.FormatAndMountSensitiveWithFormatOptions(disk, staging, "ntfs", nil, nil, nil))
	found, err := m.GetDeviceNameFromMount(staging, "")
	must("GetDeviceNameFromMount", err)
	if found != disk {
		must("GetDeviceNameFromMount", fmt.Errorf("disk %s and not %s", found, disk))
	}
	size, err := m.GetDeviceSize(disk)
	must("GetDeviceSize", err)
	volume, err := m.GetVolumeSizeInBytes(staging)
	must("GetVolumeSizeInBytes", err)
	if size != 2<<30 || volume <= 1<<30 || volume >= size {
		must("the sizes", fmt.Errorf("a volume of %d on a disk of %d bytes", volume, size))
	}
	_, err = m.ResizeVolume(staging)
	must("ResizeVolume", err)
	must("MakeDir", m.MakeDir(pod[:len(pod)-len(`\mount`)]))
	must("Mount", m.Mount(staging, pod, "", nil))
	isNot, err := m.IsLikelyNotMountPoint(pod)
	must("IsLikelyNotMountPoint", err)
	if isNot {
		must("IsLikelyNotMountPoint", fmt.Errorf("the pod has no volume"))
	}
	must("Rmdir", m.Rmdir(pod))
	must("Unmount", m.Unmount(staging))
	fmt.Println("the disk of the EBS driver was staged, published and unstaged")
}

func must(what string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		os.Exit(1)
	}
}
