// Package v2pipe has the interfaces of csi-proxy's v2 library over the named pipes of the csi-proxy daemon.
//
// A driver that was written for the library, and so for a HostProcess container as LocalSystem, then runs without
// privileges beside the daemon. It replaces its calls of New:
//
//	node, err := v2pipe.Open(ctx)
//	mounter := Mounter{Disk: node.Disk, Volume: node.Volume, Filesystem: node.Filesystem}
//
// The messages on the pipes are those of disk/v1, filesystem/v2alpha1, volume/v2alpha1, smb/v1, system/v1alpha1 and
// iscsi/v1alpha2.
//
// An error of the daemon is an error of gRPC: status.Code returns its code, and status.Convert its message.
package v2pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	disk "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	filesystem "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	iscsi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	smb "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	system "github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	volume "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Node has the interfaces of the library for this node.
type Node struct {
	Disk       disk.Interface
	Filesystem filesystem.Interface
	ISCSI      iscsi.Interface
	SMB        smb.Interface
	System     system.Interface
	Volume     volume.Interface

	connections []*grpc.ClientConn
}

// Close closes the pipes. Calls that have not ended fail.
func (n *Node) Close() error {
	var failed []error
	for _, connection := range n.connections {
		failed = append(failed, connection.Close())
	}
	return errors.Join(failed...)
}

// ErrNoPipe says that no csi-proxy serves pipes on this node.
var ErrNoPipe = errors.New("no csi-proxy serves pipes on this node")

// Open opens the pipes of the csi-proxy daemon.
//
// It opens each pipe once and checks that LocalSystem or Administrators own the pipe, because any user may create a
// pipe with such a name while the daemon does not run. Each later connection is checked in the same way. The error is
// ErrNoPipe if the node has no pipe of csi-proxy. A daemon that does not serve one of the groups is not an error: each
// call of that group fails with Unavailable.
func Open(ctx context.Context) (*Node, error) {
	return open(ctx, `csi-proxy-`, "")
}

// OpenOwnedBy opens the pipes as Open does, and accepts pipes of this owner, too, such as S-1-5-21-0-0-0-513. It is for tests
// with csi-proxy-sim, whose pipes have another owner under Wine, or if an ordinary user starts it.
func OpenOwnedBy(ctx context.Context, owner string) (*Node, error) {
	return open(ctx, `csi-proxy-`, owner)
}

// OpenOrLibrary opens the pipes as Open does. It returns the library itself, which acts within this process and needs
// LocalSystem, only if the node has no pipe of csi-proxy at all.
//
// A driver with the library and a daemon share no lock. Stop the drivers that use the library before the daemon is
// installed: this function looks for pipes only once.
func OpenOrLibrary(ctx context.Context) (*Node, error) {
	return openOr(ctx, `csi-proxy-`, library)
}

// groups has the versions of the groups, in the order of the fields of Node.
var groups = []string{"disk-v1", "filesystem-v2alpha1", "iscsi-v1alpha2", "smb-v1", "system-v1alpha1", "volume-v2alpha1"}

// others has all further pipes that a csi-proxy can serve.
var others = []string{
	"disk-v1alpha1", "disk-v1beta1", "disk-v1beta2", "disk-v1beta3",
	"filesystem-v1alpha1", "filesystem-v1beta1", "filesystem-v1beta2", "filesystem-v1",
	"iscsi-v1alpha1",
	"smb-v1alpha1", "smb-v1beta1", "smb-v1beta2",
	"volume-v1alpha1", "volume-v1beta1", "volume-v1beta2", "volume-v1beta3", "volume-v1",
}

// patience is how long Open waits for a free instance of a pipe.
const patience = 10 * time.Second

func openOr(ctx context.Context, prefix string, otherwise func() (*Node, error)) (*Node, error) {
	node, err := open(ctx, prefix, "")
	if errors.Is(err, ErrNoPipe) {
		return otherwise()
	}
	return node, err
}

// open also accepts pipes of the owner `also`, unless that is empty.
func open(ctx context.Context, prefix, also string) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := 0
	for _, group := range groups {
		connection, err := dial(ctx, prefix+group, also)
		switch {
		case err == nil:
			found++
			connection.Close()
		case !isMissing(err):
			return nil, fmt.Errorf("%s%s: %w", prefix, group, err)
		}
	}
	if found == 0 {
		for _, other := range others {
			connection, err := dial(ctx, prefix+other, also)
			if err == nil {
				connection.Close()
			}
			if !isMissing(err) {
				return nil, fmt.Errorf("csi-proxy serves %s%s, and no pipe that this package uses: %v", prefix, other, groups)
			}
		}
		return nil, ErrNoPipe
	}
	node := &Node{}
	for _, group := range groups {
		connection, err := grpc.NewClient("passthrough:///"+prefix+group,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) { return dial(ctx, name, also) }))
		if err != nil {
			node.Close()
			return nil, err
		}
		node.connections = append(node.connections, connection)
	}
	node.Disk = diskOver(node.connections[0])
	node.Filesystem = filesystemOver(node.connections[1])
	node.ISCSI = iscsiOver(node.connections[2])
	node.SMB = smbOver(node.connections[3])
	node.System = systemOver(node.connections[4])
	node.Volume = volumeOver(node.connections[5])
	return node, nil
}

// answer returns a response, or no response if the call failed.
func answer[T any](response *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return response, nil
}
