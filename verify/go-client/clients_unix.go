//go:build !windows

package main

import (
	"context"
	"net"
	"path/filepath"

	"google.golang.org/grpc"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
)

const hasPipes = false

// clients opens each group-version through its socket in folder. The published client knows only named pipes, so its
// stubs run over a connection that this program dials. The dialled name is still that of the pipe, as in the client:
// grpc-go derives the `:authority` header from it, which a server must accept.
func clients(folder string) map[string]func() (any, error) {
	return map[string]func() (any, error){
		"disk/v1":             dial(folder, "disk", "v1", func(c *grpc.ClientConn) any { return diskv1.NewDiskClient(c) }),
		"disk/v1alpha1":       dial(folder, "disk", "v1alpha1", func(c *grpc.ClientConn) any { return diskv1alpha1.NewDiskClient(c) }),
		"disk/v1beta1":        dial(folder, "disk", "v1beta1", func(c *grpc.ClientConn) any { return diskv1beta1.NewDiskClient(c) }),
		"disk/v1beta2":        dial(folder, "disk", "v1beta2", func(c *grpc.ClientConn) any { return diskv1beta2.NewDiskClient(c) }),
		"disk/v1beta3":        dial(folder, "disk", "v1beta3", func(c *grpc.ClientConn) any { return diskv1beta3.NewDiskClient(c) }),
		"filesystem/v1":       dial(folder, "filesystem", "v1", func(c *grpc.ClientConn) any { return filesystemv1.NewFilesystemClient(c) }),
		"filesystem/v1alpha1": dial(folder, "filesystem", "v1alpha1", func(c *grpc.ClientConn) any { return filesystemv1alpha1.NewFilesystemClient(c) }),
		"filesystem/v1beta1":  dial(folder, "filesystem", "v1beta1", func(c *grpc.ClientConn) any { return filesystemv1beta1.NewFilesystemClient(c) }),
		"filesystem/v1beta2":  dial(folder, "filesystem", "v1beta2", func(c *grpc.ClientConn) any { return filesystemv1beta2.NewFilesystemClient(c) }),
		"filesystem/v2alpha1": dial(folder, "filesystem", "v2alpha1", func(c *grpc.ClientConn) any { return filesystemv2alpha1.NewFilesystemClient(c) }),
		"iscsi/v1alpha1":      dial(folder, "iscsi", "v1alpha1", func(c *grpc.ClientConn) any { return iscsiv1alpha1.NewIscsiClient(c) }),
		"iscsi/v1alpha2":      dial(folder, "iscsi", "v1alpha2", func(c *grpc.ClientConn) any { return iscsiv1alpha2.NewIscsiClient(c) }),
		"smb/v1":              dial(folder, "smb", "v1", func(c *grpc.ClientConn) any { return smbv1.NewSmbClient(c) }),
		"smb/v1alpha1":        dial(folder, "smb", "v1alpha1", func(c *grpc.ClientConn) any { return smbv1alpha1.NewSmbClient(c) }),
		"smb/v1beta1":         dial(folder, "smb", "v1beta1", func(c *grpc.ClientConn) any { return smbv1beta1.NewSmbClient(c) }),
		"smb/v1beta2":         dial(folder, "smb", "v1beta2", func(c *grpc.ClientConn) any { return smbv1beta2.NewSmbClient(c) }),
		"system/v1alpha1":     dial(folder, "system", "v1alpha1", func(c *grpc.ClientConn) any { return systemv1alpha1.NewSystemClient(c) }),
		"volume/v1":           dial(folder, "volume", "v1", func(c *grpc.ClientConn) any { return volumev1.NewVolumeClient(c) }),
		"volume/v1alpha1":     dial(folder, "volume", "v1alpha1", func(c *grpc.ClientConn) any { return volumev1alpha1.NewVolumeClient(c) }),
		"volume/v1beta1":      dial(folder, "volume", "v1beta1", func(c *grpc.ClientConn) any { return volumev1beta1.NewVolumeClient(c) }),
		"volume/v1beta2":      dial(folder, "volume", "v1beta2", func(c *grpc.ClientConn) any { return volumev1beta2.NewVolumeClient(c) }),
		"volume/v1beta3":      dial(folder, "volume", "v1beta3", func(c *grpc.ClientConn) any { return volumev1beta3.NewVolumeClient(c) }),
		"volume/v2alpha1":     dial(folder, "volume", "v2alpha1", func(c *grpc.ClientConn) any { return volumev2alpha1.NewVolumeClient(c) }),
	}
}

func dial(folder, group, version string, stub func(*grpc.ClientConn) any) func() (any, error) {
	name := "csi-proxy-" + group + "-" + version
	return func() (any, error) {
		connection, err := grpc.Dial(`\\.\\pipe\\`+name,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, name+".sock"))
			}),
			grpc.WithInsecure())
		if err != nil {
			return nil, err
		}
		return stub(connection), nil
	}
}
