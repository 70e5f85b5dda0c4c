//go:build ignore

// A disk's life by the mounter of the vSphere driver.
package main

import (
	"context"
	"fmt"
	"os"

	"csi-proxy.local/v2pipe"
	"sigs.k8s.io/vsphere-csi-driver/v3/pkg/csi/service/mounter"
)

const (
	// The owner of a pipe that csi-proxy-sim makes under Wine.
	ofWine  = "S-1-5-21-0-0-0-513"
	staging = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi.vsphere.vmware.com\1\globalmount`
	pod     = `C:\var\lib\kubelet\pods\2\volumes\kubernetes.io~csi\pvc-1\mount`
)

func main() {
	ctx := context.Background()
	node, err := v2pipe.OpenOwnedBy(ctx, ofWine)
	must("Open", err)
	mounter.NodeOfV2pipe = node
	safe, err := mounter.NewSafeMounter(ctx)
	must("NewSafeMounter", err)
	m := safe.Interface.(mounter.CSIProxyMounter)

	serial, err := m.GetBIOSSerialNumber(ctx)
	must("GetBIOSSerialNumber", err)
	if serial != "VMware-56 4d 1c" {
		must("GetBIOSSerialNumber", fmt.Errorf("%q", serial))
	}
	must("Rescan", m.Rescan(ctx))
	disk, err := m.GetDiskNumber(ctx, "6000c29a1b2c3d4e5f60718293a4b5c6")
	must("GetDiskNumber", err)
	must("MakeDir", m.MakeDir(ctx, staging))
	must("FormatAndMount", m.FormatAndMount(ctx, disk, staging, "ntfs", nil))
	volume, err := m.GetDeviceNameFromMount(ctx, staging)
	must("GetDeviceNameFromMount", err)
	size, err := m.GetDiskTotalBytes(ctx, volume)
	must("GetDiskTotalBytes", err)
	bytes, err := m.GetVolumeSizeInBytes(ctx, volume)
	must("GetVolumeSizeInBytes", err)
	if size != 2<<30 || bytes <= 1<<30 || bytes >= size {
		must("the sizes", fmt.Errorf("a volume of %d on a disk of %d bytes", bytes, size))
	}
	must("ResizeVolume", m.ResizeVolume(ctx, volume, size))
	_, capacity, used, _, _, _, err := m.StatFS(ctx, staging)
	must("StatFS", err)
	if capacity != bytes || used == 0 {
		must("StatFS", fmt.Errorf("%d of %d bytes", used, capacity))
	}
	must("MakeDir", m.MakeDir(ctx, pod[:len(pod)-len(`\mount`)]))
	must("Mount", m.Mount(staging, pod, "", nil))
	exists, err := m.ExistsPath(ctx, pod)
	must("ExistsPath", err)
	if !exists {
		must("ExistsPath", fmt.Errorf("the pod has no volume"))
	}
	must("Rmdir", m.Rmdir(ctx, pod))
	must("Unmount", m.Unmount(staging))
	fmt.Println("the disk of the vSphere driver was staged, published and unstaged")
}

func must(what string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		os.Exit(1)
	}
}
